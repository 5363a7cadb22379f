"""A scikit-learn estimator: ``SpanTagger().fit(texts, spans)``, for cross-validation and parameter search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spanshot.errors import InputError
from spanshot.formats.char_spans import CharSpan, MarkedText, sentences_of
from spanshot.formats.examples import ExampleSource
from spanshot.formats.json_values import Place
from spanshot.optional import missing
from spanshot.types import Entity, Sentence, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError:
    raise missing("scikit-learn", "sklearn") from None

AnySpan: TypeAlias = Entity | tuple[int, int, str] | Mapping[str, object]
"""A span in characters: an entity, ``(start, end, label)``, or a record with these keys."""


class SpanTagger(BaseEstimator):
    """Learns the spans of a few texts and finds such spans in others.

    Parameters are those of `spanshot.learn`; ``model`` is a model or the folder of one. After ``fit``, ``tagger_`` is
    the tagger and ``labels_`` are its labels.
    """

    def __init__(
        self,
        *,
        nested: bool = False,
        threshold: float | Mapping[str, float] | None = None,
        finetune: bool = False,
        model: Model | str | Path | None = None,
        batch_size: int = 32,
    ) -> None:
        self.nested = nested
        self.threshold = threshold
        self.finetune = finetune
        self.model = model
        self.batch_size = batch_size

    def fit(self, X: ExampleSource, y: Iterable[Iterable[AnySpan]] | None = None) -> SpanTagger:
        """Learn the spans ``y`` of the texts ``X``; without ``y``, examples in any form that `spanshot.learn` reads."""
        from spanshot.model import learn, load_model

        examples = X
        if y is not None:
            if isinstance(X, str | Path | Sentence | SupportSet | Mapping):
                raise InputError(f"with spans, X must be a list of texts; found {type(X).__name__}")
            examples = to_sentences([str(text) for text in X], list(y))
        model = load_model(self.model) if isinstance(self.model, str | Path) else self.model
        self.tagger_ = learn(
            examples, nested=self.nested, threshold=self.threshold, finetune=self.finetune, model=model
        )
        self.labels_ = self.tagger_.labels
        return self

    def predict(self, X: Iterable[str]) -> list[list[Entity]]:
        """Return the entities of each text."""
        check_is_fitted(self, "tagger_")
        return list(self.tagger_.pipe(X, self.batch_size))

    def score(self, X: Iterable[str], y: Iterable[Iterable[AnySpan]]) -> float:
        """Return micro F1: a span is found if its start, end and label are right. 1.0 if there are none to find."""
        right, total = 0, 0
        for entities, spans in zip(self.predict(X), y, strict=True):
            predicted, gold = set(map(bounds, entities)), set(map(bounds, spans))
            right += len(predicted & gold)
            total += len(predicted) + len(gold)
        return 2 * right / total if total else 1.0


def bounds(span: AnySpan) -> tuple[int, int, str]:
    """Return the start, end and label of a span in any form.

    >>> bounds({"start": 3, "end": 7, "label": "city"})
    (3, 7, 'city')
    """
    if isinstance(span, Mapping):
        start, end, label = span.get("start"), span.get("end"), span.get("label")
    elif isinstance(span, Entity):
        start, end, label = span.start, span.end, span.label
    elif isinstance(span, Sequence) and not isinstance(span, str) and len(span) == 3:
        start, end, label = span
    else:
        raise InputError(f"a span must be (start, end, label), a record or an Entity; found {span!r}")
    return int(str(start)), int(str(end)), str(label)


def to_sentences(texts: Sequence[str], spans: Sequence[Iterable[AnySpan]]) -> list[Sentence]:
    """Return texts with spans as examples; a span without a word is an error."""
    if len(texts) != len(spans):
        raise InputError(f"found {len(texts)} texts and {len(spans)} lists of spans; expected as many of each")
    sentences: list[Sentence] = []
    for number, (text, text_spans) in enumerate(zip(texts, spans, strict=True), start=1):
        place = Place(f"text {number}")
        marked = tuple(CharSpan(*bounds(span), place) for span in text_spans)
        read, dropped = sentences_of(MarkedText(text, marked, place, exact=True))
        if any(drop.span for drop in dropped):
            first = next(drop for drop in dropped if drop.span)
            raise InputError(f"{first.place}: the span {first.span} cannot be learned: {first.reason}")
        sentences += read
    return sentences
