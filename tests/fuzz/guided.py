"""Fuzz one reader with atheris: python tests/fuzz/guided.py TARGET [options of libFuzzer]."""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))

with atheris.instrument_imports(include=["spanshot"]):
    from fuzz_targets import TARGETS

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    with tempfile.TemporaryDirectory(prefix="spanshot-fuzz-") as folder:
        for number, content in enumerate(target.seeds):
            (Path(folder) / str(number)).write_bytes(content)
        atheris.Setup([*sys.argv, folder], target.run)
        atheris.Fuzz()
