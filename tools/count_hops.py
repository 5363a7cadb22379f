"""Count the functions and files of spanshot that run when a tagger is learned, and when it tags a text.

The fewer there are, the easier the code is to follow. Functions are counted once, however often they are called;
lambdas and generator expressions count as part of the function around them. Modules that are imported on the way do
not count, nor does work that is done once and kept: the tagger has tagged a text before.

    python tools/count_hops.py
    python tools/count_hops.py --list
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeVar

import spanshot

PACKAGE = Path(spanshot.__file__).parent
EXAMPLES = [
    "fly to [New York](city) on [Monday](day)",
    "is there a train to [Oslo](city) [tomorrow](day) ?",
    "book a table in [San Jose](city)",
]
TEXT = "I want to go from Paris to Los Angeles on Friday, or to Rome."
Result = TypeVar("Result")


def functions_of(call: Callable[[], Result]) -> tuple[Result, set[CodeType]]:
    """Return what the call returns, and the functions of spanshot that ran in it."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not frame.f_code.co_name.startswith("<"):
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return result, {code for code in codes if Path(code.co_filename).is_relative_to(PACKAGE)}


def main() -> None:
    """Count, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="also list the functions")
    parser.add_argument("--model", metavar="FOLDER", help="count for this model instead of the packaged one")
    arguments = parser.parse_args()
    model = spanshot.load_model(arguments.model) if arguments.model else None
    spanshot.learn(EXAMPLES, model=model)  # loads the model and fills its caches, which is not counted
    tagger, learning = functions_of(lambda: spanshot.learn(EXAMPLES, model=model))
    tagger(TEXT)  # fills the tagger's caches
    entities, tagging = functions_of(lambda: tagger(TEXT))
    assert entities, "nothing was tagged, so not all of the way was counted"
    for name, codes in (("learn", learning), ("tag", tagging)):
        places = sorted({(code.co_filename, code.co_firstlineno, code.co_qualname) for code in codes})
        print(f"{name}: {len(places)} functions in {len({place[0] for place in places})} files")
        for path, line, function in places if arguments.list else []:
            print(f"  {Path(path).relative_to(PACKAGE)}:{line} {function}")


if __name__ == "__main__":
    main()
