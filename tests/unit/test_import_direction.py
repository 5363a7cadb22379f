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
# The ground floor reaches the upper floor, `research`, by the imports in LAZY and no others.
GROUND = {
    "head_file",
    "learner",
    "linear_tagger",
    "manifest",
    "saved_tagger",
    "engine",
    "heads",
    "checkpoint",
    "tagger_file",
    "files",
    "json_text",
    "settings",
    "tags",
    "words",
    "allocator",
    "formats",
    "decode",
    "evaluation",
    "examples",
}
ALLOWED = {
    "errors": set(),
    "types": {"errors", "words"},
    "json_text": {"errors"},
    "locks": set(),
    "optional": {"errors"},
    "files": {"errors", "locks"},
    "manifest": {"errors", "files", "json_text"},
    "scratch": {"errors", "files", "locks", "manifest"},
    "checkpoint": {"errors", "files", "locks", "manifest", "scratch"},
    "tagger_file": VALUES | {"json_text", "words"},
    "settings": {"errors"},
    "tags": VALUES,
    "words": set(),
    "allocator": set(),
    "formats": VALUES | {"files", "json_text", "tags", "words", "optional"},
    "decode": VALUES | {"tags"},
    "heads": {"errors"},
    "engine": {"errors", "heads", "json_text", "words", "settings"},
    "linear_tagger": VALUES | {"decode.greedy", "engine", "heads"},
    "learner": VALUES | {"engine", "heads", "linear_tagger", "optional"},
    "evaluation": VALUES | {"json_text"},
    "examples": VALUES
    | {"evaluation", "json_text", "engine", "heads", "learner", "linear_tagger", "tagger", "model", "words"},
    "head_file": VALUES | {"engine", "heads", "learner", "linear_tagger"},
    "saved_tagger": VALUES
    | {"checkpoint", "engine.layout", "head_file", "learner", "linear_tagger", "manifest", "optional"}
    | {"tagger", "tagger_file"},
    "tagger": VALUES | {"engine.names", "words", "formats"},
    "model": VALUES | {"words", "formats", "checkpoint", "tagger", "saved_tagger"},
    "integrations": VALUES
    | {"words", "formats", "files", "json_text", "allocator", "evaluation", "tagger", "model", "optional"}
    | {"__init__", "checkpoint", "manifest", "saved_tagger", "tagger_file"},
    "corpus": VALUES
    | {
        "allocator",
        "engine.threads",
        "files",
        "formats",
        "json_text",
        "locks",
        "manifest",
        "model",
        "optional",
        "tagger",
    },
    "service": VALUES | GROUND | {"__init__", "tagger", "model", "locks", "integrations", "optional"},
    "ui": VALUES | GROUND | {"__init__", "tagger", "model", "locks", "optional"},
    "__init__": VALUES | {"tagger", "model"},
    "cli": VALUES
    | GROUND
    | {"__init__", "tagger", "model", "locks", "integrations", "optional", "service", "ui", "corpus"},
    "__main__": {"cli"},
    "research": VALUES | GROUND | {"__init__", "tagger", "model", "cli", "locks", "optional"},
}
# Within the upper floor, from bottom to top.
ALLOWED_UPSTAIRS = {
    "configs": set(),
    "pools": set(),
    "corpora": {"pools"},
    "nn": set(),
    "learning": {"nn", "pools"},
    "methods": {"nn", "learning", "pools"},
    "model_settings": {"methods"},
    "model_file": {"nn", "learning", "methods", "model_settings"},
    "checkpoint": {"nn", "methods", "model_file", "model_settings", "training.settings"},
    "export": set(),
    "export_model": {"export", "checkpoint", "methods", "nn"},
    "training": {"corpora", "nn", "learning", "methods", "model_settings", "checkpoint", "experiments.evaluate"},
    "experiments": {"configs", "corpora", "nn", "learning", "methods", "model_settings", "checkpoint", "training"}
    | {"export_model"},
    "cli": {
        "configs",
        "corpora",
        "nn",
        "learning",
        "methods",
        "model_settings",
        "checkpoint",
        "training",
        "experiments",
        "export_model",
    },
}
LAZY = {
    "formats": {"ui.learning", "ui.project"},
    "tagger": {"integrations", "examples.suggest"},
    "model": {"examples.precision", "integrations.hub"},
    "saved_tagger": {"research.checkpoint", "model"},
    "learner": {"research.export_model"},
    "__init__": {"integrations.notebook"},
}
WITHOUT_TORCH = (
    "spanshot",
    "spanshot.types",
    "spanshot.errors",
    "spanshot.json_text",
    "spanshot.locks",
    "spanshot.files",
    "spanshot.checkpoint",
    "spanshot.tagger_file",
    "spanshot.settings",
    "spanshot.tags",
    "spanshot.words",
    "spanshot.tagger",
    "spanshot.model",
    "spanshot.allocator",
    "spanshot.formats",
    "spanshot.decode",
    "spanshot.heads",
    "spanshot.evaluation",
    "spanshot.examples",
    "spanshot.corpus",
    "spanshot.cli",
    "spanshot.research.corpora",
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
            # `from spanshot.research.nn import encoder` imports spanshot.research.nn.encoder if there is such a module
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
    others = {other for other in imported(MODULES[module]) if other.split(".")[0] != part}
    allowed = ALLOWED[part] | LAZY.get(part, set())
    wrong = {other for other in others if not any(other == name or other.startswith(f"{name}.") for name in allowed)}
    assert not wrong, f"spanshot.{module} imports {', '.join(sorted(wrong))}"


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("research.")])
def test_a_module_of_the_upper_floor_imports_only_from_rooms_below_its_own(module):
    room = module.split(".")[1]
    assert room in ALLOWED_UPSTAIRS, f"say in ALLOWED_UPSTAIRS what the new room {room!r} may import"
    others = {name.removeprefix("research.") for name in imported(MODULES[module]) if name.startswith("research.")}
    allowed = ALLOWED_UPSTAIRS[room] | {room}
    wrong = {other for other in others if not any(other == name or other.startswith(f"{name}.") for name in allowed)}
    assert not wrong, f"spanshot.{module} imports {', '.join(sorted(wrong))}"


def test_the_allowed_directions_have_no_circle():
    below = {part: {name.split(".")[0] for name in names} for part, names in ALLOWED.items()}
    while below:
        free = [part for part, names in below.items() if not names & below.keys()]
        assert free, f"these import one another: {', '.join(below)}"
        for part in free:
            del below[part]


def test_nobody_but_the_command_and_the_research_commands_imports_the_cli():
    importers = {name for name, path in MODULES.items() if any(i.split(".")[0] == "cli" for i in imported(path))}
    assert {name for name in importers if not name.startswith(("cli", "research.cli"))} == {"__main__"}


def test_values_files_decoding_and_scoring_do_without_torch():
    names = existing(WITHOUT_TORCH)
    assert {"spanshot", "spanshot.types", "spanshot.decode.conflicts", "spanshot.evaluation.counts"} <= set(names)
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'torch', 'transformers', 'accelerate'} & sys.modules.keys()\n"
        "    assert not heavy, f'{name} brings in {heavy}'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
