"""Tests use tiny encoders: one thread each is fastest, and leaves the other core to a second worker."""

import ast
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

# Every run draws the same examples, however busy the machine is, so that a change fails by its own fault only.
# `pytest --hypothesis-profile=random` draws new ones, to look for more.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")


TESTS = Path(__file__).parent
NEED_ALL = ("test_documentation.py", "test_examples_laws.py")  # run commands of both floors, read all formats
UPSTAIRS = ("torch", "transformers", "onnx", "spanshot.research", "seqeval", "nervaluate")


def imports_upstairs(path: Path) -> bool:
    """Return whether a test file, or a helper that it imports, imports the upper floor at its top level."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.split(".")[0] in UPSTAIRS or name.startswith("spanshot.research"):
                return True
            if (helper := TESTS / f"{name}.py").is_file() and imports_upstairs(helper):
                return True
    return False


# Without the extra [train], the tests of the ground floor remain.
collect_ignore = (
    [str(path) for path in TESTS.rglob("test_*.py") if path.name in NEED_ALL or imports_upstairs(path)]
    if importlib.util.find_spec("torch") is None
    else []
)


def _seed() -> None:
    if torch := sys.modules.get("torch"):  # tests that do without it are not made to import it
        torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="module")
def _same_weights_in_every_module():
    """Random weights that a module's fixtures make are the same in every run, whatever ran before."""
    _seed()


@pytest.fixture(autouse=True)
def _same_weights_in_every_test():
    _seed()


@pytest.fixture
def without_onednn(monkeypatch):
    """Leave linear layers to torch, and call the transformer as a whole outside training, whatever the processor."""
    pytest.importorskip("torch")
    monkeypatch.setattr("spanshot.research.nn.onednn._is_faster", lambda: False)
