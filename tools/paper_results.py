"""Write the paper's tables and figures into docs/results.md, from the records of finished runs.

    python tools/paper_results.py FOLDER

FOLDER is the folder with the corpora, as for `spanshot reproduce --data`; nothing is trained. The records are in
docs/results/reproduction.jsonl, which `spanshot reproduce --records` writes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from spanshot.files import write_text
from spanshot.research.cli.reproduce import reproduce_experiments
from spanshot.research.experiments.pages import fill_pages
from spanshot.research.experiments.reproduce.catalogue import ALL
from spanshot.research.experiments.reproduce.markdown import to_section
from spanshot.research.experiments.reproduce.plots import draw

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "reproduction.jsonl"
PICTURES = "pictures/reproduced"


def main() -> None:
    """Parse the arguments, write the tables and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder with the corpora")
    data: Path = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as out:
        results = reproduce_experiments([ALL], "laptop", data, Path(out), 1, tables=True, records=RECORDS, quiet=True)
    (DOCS / PICTURES).mkdir(exist_ok=True)
    for result in results:
        for chart in result.charts:
            write_text(DOCS / PICTURES / f"{chart.name}.svg", [draw(chart)])
        write_text(DOCS / "results" / f"reproduce-{result.name}.txt", [to_section(result, PICTURES)])
    for page in fill_pages([DOCS / "results.md"], DOCS / "results"):
        print(page)


if __name__ == "__main__":
    main()
