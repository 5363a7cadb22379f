"""spaCy's ``DocBin``: a file of annotated Docs.

All spans are in the span group "sc", where spaCy's span categoriser keeps them, with their scores; those that do not
overlap are also the entities of the Doc. Reading takes entities and all span groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spanshot.errors import DataError
from spanshot.files import write_bytes
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.json_values import Place
from spanshot.optional import need

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span
    from spacy.vocab import Vocab

GROUP = "sc"
SUFFIX = ".spacy"


def read_docbin(path: Path) -> Iterator[MarkedText | Drop]:
    """Read the Docs of a file."""
    tokens, vocab = need("spacy.tokens", "spacy"), new_vocab()
    try:
        docs = list(tokens.DocBin().from_disk(path).get_docs(vocab))
    except FileNotFoundError:
        raise DataError.at(path, None, "no such file; check the path") from None
    except Exception as error:  # zlib, msgpack and spaCy raise different errors
        raise DataError.at(path, None, f"is not a DocBin of spaCy ({type(error).__name__})") from error
    for number, doc in enumerate(docs, start=1):
        yield marked_doc(doc, Place(path, None, f"document {number}"))


def marked_doc(doc: Doc, place: Place) -> MarkedText | Drop:
    """Return the text of a Doc with its entities and the spans of all groups."""
    spans: dict[tuple[int, int, str], CharSpan | Drop] = {}

    def add(span: Span, score: float | None = None) -> None:
        key = (span.start_char, span.end_char, span.label_)
        if key not in spans or score is not None:
            spans[key] = char_span(*key, place, None, score)

    for span in doc.ents:
        add(span)
    for group in doc.spans.values():
        scores = group.attrs.get("scores")
        has_scores = scores is not None and len(scores) == len(group)
        for number, span in enumerate(group):
            add(span, float(scores[number]) if has_scores and not math.isnan(scores[number]) else None)
    return marked_text(doc.text, spans.values(), place, exact=True)


def write_docbin(path: Path, documents: Iterable[Document], log: DropLog) -> None:
    """Write documents as Docs. The file is made in memory, since spaCy compresses it as a whole."""
    tokens, vocab = need("spacy.tokens", "spacy"), new_vocab()
    docs = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE"])
    for number, document in enumerate(documents, start=1):
        docs.add(to_doc(document, vocab, log, f"sentence {number}"))
    write_bytes(path, docs.to_bytes())


def new_vocab() -> Vocab:
    """Return an empty vocabulary."""
    vocab: Vocab = need("spacy.vocab", "spacy").Vocab()
    return vocab


def to_doc(document: Document, vocab: Vocab, log: DropLog, place: str) -> Doc:
    """Return a Doc with the same text and marks. Its tokens are spanshot's words, split where a mark begins or ends."""
    tokens, util = need("spacy.tokens", "spacy"), need("spacy.util", "spacy")
    words, spaces = _tokens(document)
    doc = tokens.Doc(vocab, words=words, spaces=spaces)
    spans, written_marks = [], []
    for mark in document.marks:
        span = doc.char_span(mark.start, mark.end, mark.label)
        if span is None:  # an empty mark
            log.add(Drop(DropReason.NO_WORD, place, mark.described(document.text)))
        else:
            spans.append(span)
            written_marks.append(mark)
    group = tokens.SpanGroup(doc, name=GROUP, spans=spans)
    if any(mark.score is not None for mark in written_marks):
        group.attrs["scores"] = [math.nan if mark.score is None else mark.score for mark in written_marks]
    doc.spans[GROUP] = group
    doc.set_ents(util.filter_spans(_allowed(spans)))
    return doc


def _allowed(spans: Iterable[Span]) -> list[Span]:
    """Return the spans that may be entities: spaCy refuses those of white space."""
    return [span for span in spans if not span[0].text.isspace() and not span[-1].text.isspace()]


def _tokens(document: Document) -> tuple[list[str], list[bool]]:
    """Cut a text into tokens at the bounds of words and marks. A token has a single space after it, or none."""
    text = document.text
    starts, ends = {mark.start for mark in document.marks}, {mark.end for mark in document.marks}
    cuts = {0, len(text), *starts, *ends, *(at for word in document.words for at in (word.start, word.end))}
    # The first space between two words belongs to the token before it, unless a mark begins or ends with it.
    cuts |= {cut + 1 for cut in cuts if text[cut : cut + 1] == " "}
    words: list[str] = []
    spaces: list[bool] = []
    for start, end in pairwise(sorted(cuts)):
        is_space = text[start:end] == " " and start not in starts and end not in ends
        if is_space and words and not spaces[-1]:
            spaces[-1] = True
        else:
            words.append(text[start:end])
            spaces.append(False)
    return words, spaces
