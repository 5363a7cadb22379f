"""Who may import whom, so that the parts can be understood, and used, one at a time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spanshot

ROOT = Path(spanshot.__file__).parent
VALUES = {"errors", "types"}
# Each part and what it may import of the others. A name with a dot allows that one module only.
ALLOWED = {
    "errors": set(),
    "types": {"errors"},
    "config": {"errors"},
    "tags": VALUES,
    "text": VALUES,
    "windows": VALUES,
    "memory": set(),
    "formats": VALUES | {"tags", "text"},
    "data": VALUES | {"tags", "text", "formats", "config"},
    "decode": VALUES | {"tags"},
    "nn": VALUES | {"tags", "decode.scores"},  # the types of what it computes
    "methods": VALUES | {"nn", "decode", "tags"},
    "experiment": VALUES | {"config", "tags", "text", "formats", "data", "nn", "decode", "methods"},
    "predictor": VALUES
    | {"config", "tags", "text", "windows", "memory", "formats", "decode", "methods"}
    | {"experiment.checkpoint", "experiment.settings", "nn.kernels"},
    "__init__": VALUES | {"config", "tags", "text", "formats", "predictor"},
    "interfaces": VALUES
    | {
        "__init__",
        "config",
        "tags",
        "text",
        "memory",
        "formats",
        "data",
        "decode",
        "nn",
        "methods",
        "experiment",
        "predictor",
    },
    "__main__": {"interfaces"},
}
WITHOUT_TORCH = (
    "spanshot",
    "spanshot.types",
    "spanshot.errors",
    "spanshot.config",
    "spanshot.tags",
    "spanshot.text",
    "spanshot.windows",
    "spanshot.memory",
    "spanshot.formats",
    "spanshot.data",
    "spanshot.decode.conflicts",
    "spanshot.decode.decoders",
    "spanshot.decode.linear_chain",
    "spanshot.decode.scores",
    "spanshot.decode.transitions",
    "spanshot.experiment.scoring",
)


def module_names() -> dict[str, Path]:
    """Every module of the package by its name below ``spanshot``; packages by their own."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


MODULES = module_names()


def imported(path: Path) -> set[str]:
    """The modules below ``spanshot`` that a file imports, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import from spanshot by its full name"
            # `from spanshot.nn import encoder` imports spanshot.nn.encoder if there is such a module
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole.removeprefix("spanshot.") in MODULES else str(node.module))
    below = {name for name in found if name == "spanshot" or name.startswith("spanshot.")}
    return {name.removeprefix("spanshot").removeprefix(".") or "__init__" for name in below}


def existing(prefixes: tuple[str, ...]) -> list[str]:
    """Those modules, and all modules within those packages."""
    names = ["spanshot" if name == "__init__" else f"spanshot.{name}" for name in MODULES]
    return [n for n in names if any(n == p or (n.startswith(f"{p}.") and p != "spanshot") for p in prefixes)]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_parts_below_its_own(module):
    part = module.split(".")[0]
    assert part in ALLOWED, f"say in ALLOWED what the new part {part!r} may import"
    wrong = {
        other
        for other in imported(MODULES[module])
        if other.split(".")[0] != part and not {other, other.split(".")[0]} & ALLOWED[part]
    }
    assert not wrong, f"spanshot.{module} imports {', '.join(sorted(wrong))}"


def test_the_allowed_directions_have_no_circle():
    below = {part: {name.split(".")[0] for name in names} for part, names in ALLOWED.items()}
    while below:
        free = [part for part, names in below.items() if not names & below.keys()]
        assert free, f"these import one another: {', '.join(below)}"
        for part in free:
            del below[part]


def test_nobody_but_the_command_imports_the_interfaces():
    importers = {name for name, path in MODULES.items() if any(i.startswith("interfaces") for i in imported(path))}
    assert {name for name in importers if not name.startswith("interfaces")} == {"__main__"}


def test_values_files_decoding_and_scoring_do_without_torch():
    names = existing(WITHOUT_TORCH)
    assert {"spanshot", "spanshot.types", "spanshot.decode.conflicts", "spanshot.experiment.scoring"} <= set(names)
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'torch', 'transformers', 'accelerate'} & sys.modules.keys()\n"
        "    assert not heavy, f'{name} brings in {heavy}'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
