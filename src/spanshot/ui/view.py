"""What the page shows of a project: rows, labels with their counts, and filtered lists of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from spanshot.evaluation.report import Report
from spanshot.json_text import JsonObject, JsonValue
from spanshot.types import Entity
from spanshot.ui.state import Label, Marked, State, Text

Suggested = tuple[Marked, float]
"""A suggestion and its score."""


def open_suggestions(text: Text, entities: Iterable[Entity], *, nested: bool) -> list[Suggested]:
    """Return the suggestions for a text that its annotation does not answer; none for a reviewed text.

    Suggestions of the model come first; those that were read with the text fill the gaps.
    """
    if text.reviewed is not None:
        return []
    chosen: list[Suggested] = []
    predicted = [(Marked(entity.start, entity.end, entity.label), entity.score) for entity in entities]
    for span, score in (*predicted, *text.imported):
        if span in text.marks or span in text.rejected:
            continue
        others = [*text.marks, *(other for other, _ in chosen)]
        if nested:
            is_free = not any(_crosses(span, other) for other in others) and all(span != other for other, _ in chosen)
        else:
            is_free = not any(span.overlaps(other.start, other.end) for other in others)
        if is_free:
            chosen.append((span, score))
    return sorted(chosen)


def _crosses(first: Marked, second: Marked) -> bool:
    if not first.overlaps(second.start, second.end):
        return False
    return (first.start < second.start) == (first.end < second.end) and first.start != second.start


def row(text: Text, suggested: Iterable[Suggested], revision: int) -> JsonObject:
    """Return a text with its words and spans as the page takes it. Offsets count code points."""
    return {
        "id": text.number,
        "revision": revision,
        "text": text.text,
        "source": text.source,
        "words": [at for word in text.words for at in (word.start, word.end)],
        "marks": [_span(span) for span in sorted(text.marks)],
        "rejected": [_span(span) for span in sorted(text.rejected)],
        "suggested": [{**_span(span), "score": round(score, 3)} for span, score in suggested],
        "reviewed": text.reviewed is not None,
    }


def _span(span: Marked) -> JsonObject:
    return {"start": span.start, "end": span.end, "label": span.label}


def labels(
    state: State, suggested: Iterable[Suggested], defaults: Mapping[str, float], report: Report | None
) -> list[JsonValue]:
    """Return the labels with counts, thresholds and results of leave-one-out."""
    marks = Counter(span.label for text in state.texts.values() for span in text.marks)
    rejected = Counter(span.label for text in state.texts.values() for span in text.rejected)
    suggestions = Counter(span.label for span, _ in suggested)

    def describe(label: Label) -> JsonObject:
        name = label.label
        counts = report.labels.get(name) if report else None
        confusions = Counter[str]()
        for (gold, predicted), count in (report.confusions if report else {}).items():
            if gold == name:
                confusions[predicted] += count
        return {
            "label": name,
            "name": label.name,
            "color": label.color,
            "marks": marks[name],
            "rejected": rejected[name],
            "suggested": suggestions[name],
            "threshold": label.threshold,
            "default": round(defaults[name], 3) if name in defaults else None,
            "precision": round(counts.precision, 3) if counts and counts.tp + counts.fp else None,
            "recall": round(counts.recall, 3) if counts and counts.tp + counts.fn else None,
            "tested": counts.tp + counts.fn if counts else 0,
            "confusions": [{"label": other, "count": count} for other, count in confusions.most_common(3)],
        }

    return [describe(label) for label in state.labels.values()]


def listed(
    state: State,
    suggested: Callable[[int], list[Suggested]],
    *,
    status: str = "all",
    label: str = "",
    search: str = "",
) -> Iterator[int]:
    """Yield the numbers of the texts that a filter lets through."""
    wanted = search.casefold()
    for number, text in state.texts.items():
        if wanted and wanted not in text.text.casefold():
            continue
        if status == "unreviewed" and text.reviewed is not None:
            continue
        if status == "reviewed" and text.reviewed is None:
            continue
        suggestions = suggested(number) if status == "suggestions" or label else []
        if status == "suggestions" and not suggestions:
            continue
        if label and not any(span.label == label for span in (*text.marks, *(span for span, _ in suggestions))):
            continue
        yield number
