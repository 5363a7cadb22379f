"""Follow the pages on integrations as a user does: install what a page says in a fresh environment, and run its code.

    python tools/smoke_pages.py [PAGE ...]

Builds the wheel. For each page, creates a virtual environment outside the checkout, installs the wheel with the extra
that the page names, and the packages on the other side. Then runs the code of the page and compares its output.
"""

from __future__ import annotations

import re
import sys
import tempfile
import venv
from pathlib import Path

from smoke import ROOT, build, run

PAGES = {
    "docs/integrations/tables.md": ("pandas", "polars", "datasets"),
    "docs/integrations/spacy.md": (),
    "docs/integrations/scikit-learn.md": (),
    "docs/integrations/notebooks.md": ("ipython",),
    "docs/integrations/export.md": (),
    "docs/integrations/migration.md": ("datasets",),
    "docs/how-to/formats.md": (),
}
"""Packages that users of the page have already."""
EXTRA = re.compile(r"pip install ['\"]spanshot\[(\w+)\]")


def follow(page: str, wheel: Path, folder: Path) -> None:
    """Install and run a page."""
    extra = EXTRA.search((ROOT / page).read_text(encoding="utf-8"))
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    target = f"spanshot[{extra[1]}] @ {wheel.as_uri()}" if extra else str(wheel)
    run(*pip, "--constraint", ROOT / "constraints.txt", target, *PAGES.get(page, ()), folder=folder)
    print(run(python, ROOT / "tools" / "page_outputs.py", "--check", ROOT / page, folder=folder).strip(), flush=True)


def main() -> None:
    """Follow the given pages, or all."""
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build(Path(scratch) / "dist")
        for number, page in enumerate(sys.argv[1:] or PAGES):
            follow(page, wheel, Path(scratch) / f"environment{number}")


if __name__ == "__main__":
    main()
