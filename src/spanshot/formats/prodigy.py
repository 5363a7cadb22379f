"""Prodigy's ``db-out``: JSON lines with ``"text"``, ``"spans"`` and ``"answer"``.

Offsets are counted by Python, in code points. A span may repeat its text, or name its first and last token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop, DropReason
from spanshot.formats.json_values import Place

_KEYS = {"answer", "_task_hash", "_input_hash"}


def fits_prodigy(record: dict[str, Any]) -> bool:
    """Whether a record may be Prodigy's."""
    spans = record.get("spans")
    return bool(_KEYS & record.keys()) if spans is None else isinstance(spans, list)


def marked_by_prodigy(records: Iterable[tuple[Place, Any]]) -> Iterator[MarkedText | Drop]:
    """The texts of accepted records; a record without an answer counts as accepted, one without spans as unmarked."""
    for place, record in records:
        if not isinstance(record, dict):
            place.take(record, "text", str)
        if record.get("answer", "accept") != "accept":
            yield Drop(DropReason.NOT_ACCEPTED, str(place))
            continue
        spans = place.check(record.get("spans") or [], "spans", list)
        found = [_span(span, record, place.within(f"span {number}")) for number, span in enumerate(spans, start=1)]
        yield marked_text(record.get("text"), found, place, exact=True)


def _span(span: Any, record: dict[str, Any], place: Place) -> CharSpan | Drop:
    start, end = place.take(span, "start", int), place.take(span, "end", int)
    if span.get("answer", "accept") != "accept":
        return Drop(DropReason.NOT_ACCEPTED, str(place), f"{start}..{end}")
    return char_span(start, end, span.get("label"), place, span.get("text") or _text_of_tokens(span, record))


def _text_of_tokens(span: dict[str, Any], record: dict[str, Any]) -> str | None:
    """The text from the span's first to its last token (both belong to it), if the record says."""
    tokens, first, last = record.get("tokens"), span.get("token_start"), span.get("token_end")
    if not isinstance(tokens, list) or type(first) is not int or type(last) is not int:
        return None
    texts = [token.get("text") if isinstance(token, dict) else None for token in tokens[max(first, 0) : last + 1]]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if known and len(known) == len(texts) else None
