"""Write examples in any format that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from spanshot.formats.brat import write_brat
from spanshot.formats.columns import write_conll
from spanshot.formats.doccano import write_doccano
from spanshot.formats.dropped import Dropped
from spanshot.formats.guess import find_format
from spanshot.formats.inline import write_inline_file
from spanshot.formats.jsonl import write_jsonl
from spanshot.formats.label_studio import write_label_studio
from spanshot.formats.prodigy import write_prodigy
from spanshot.types import Sentence

WRITERS: dict[str, Callable[[str | Path, Iterable[Sentence]], Dropped]] = {
    "inline": write_inline_file,
    "jsonl": write_jsonl,
    "conll": write_conll,
    "label-studio": write_label_studio,
    "doccano": write_doccano,
    "prodigy": write_prodigy,
    "brat": write_brat,
}


def write_examples(
    path: str | Path, sentences: Iterable[Sentence], format: str = "jsonl", *, scheme: str = "bio"
) -> Dropped:
    """Write sentences to a file and return what the format cannot express.

    ``scheme`` is the tag scheme of conll: io, bio or bioes. A brat document is named by its .ann file.
    """
    name = find_format(format)
    write = partial(write_conll, scheme=scheme) if name == "conll" else WRITERS[name]
    return write(path, sentences)
