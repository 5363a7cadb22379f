"""The file `head.safetensors` in the checkpoint of a tagger: its fitted head, so that loading needs no learning."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors import numpy as tensors

from spanshot.engine.spans import candidate_widths
from spanshot.errors import DataError
from spanshot.heads.evidence import Annotated
from spanshot.heads.linear import LinearHead, Prior
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import LinearTagger
from spanshot.types import LearnOptions, SupportSet

HEAD = "head.safetensors"
MOST_WIDTH = 100_000
LARGEST = 1e6
"""Weights are far smaller. Products of larger ones could overflow."""
Arrays = dict[str, npt.NDArray[np.generic]]
Kind = TypeVar("Kind", bound=np.generic)


def head_bytes(tagger: LinearTagger, *, examples: bool) -> bytes:
    """Return the content of `head.safetensors`: all that tagging needs, and the annotated spans to explain it."""
    head = tagger.head
    arrays: Arrays = {
        "thetas": head.thetas.astype(np.float64),
        "prior.weights": head.prior.weights,
        "prior.bias": head.prior.bias,
        "prior.named": np.array(head.prior.named),
        "counts": np.array(head.counts, np.int64),
        "widths": np.array(tagger.widths, np.int64),
    }
    if examples:
        annotated = tagger.annotated or Annotated.of(head)
        arrays |= {
            "annotated.vectors": annotated.vectors.astype(np.float16),
            "annotated.coefficients": annotated.coefficients,
            "annotated.sentence": annotated.sentence,
            "annotated.row": annotated.row,
        }
    return tensors.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def read_head(content: bytes, learner: LinearLearner, support: SupportSet, options: LearnOptions) -> LinearTagger:
    """Return the tagger of a saved head. Every problem is a `DataError`."""
    try:
        arrays: Arrays = dict(tensors.load(content))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
        raise DataError(f"damaged: {reason}") from None
    labels, size = len(support.labels), len(learner.encoder.encode_names([""]).weights[0])
    weights = _array(arrays, "prior.weights", np.float32, (labels, size))
    bias = _array(arrays, "prior.bias", np.float32, (labels,))
    named = _array(arrays, "prior.named", np.bool_, (labels,))
    thetas = _array(arrays, "thetas", np.float64, (labels, size + 2))
    counts = _array(arrays, "counts", np.int64, (labels,))
    widths = _array(arrays, "widths", np.int64, (None,))
    if (counts < 0).any() or not len(widths) or widths.min() < 1 or widths.max() > MOST_WIDTH or len(widths) > 256:
        raise DataError("counts and widths must be positive")
    prior = Prior(weights, bias, tuple(named.tolist()))
    numbers = tuple(counts.tolist())
    settings = learner.settings
    head = LinearHead(settings.head, prior, (), numbers, thetas)
    annotated = Annotated(
        np.zeros((0, size), np.float32), np.zeros((0, labels), np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    )
    if "annotated.vectors" in arrays:
        annotated = _annotated(arrays, support, size)
    chosen = tuple(sorted(set(widths.tolist()))) or candidate_widths()
    return LinearTagger(learner, support.labels, support.sentences, head, settings.scores, options, chosen, annotated)


def _annotated(arrays: Arrays, support: SupportSet, size: int) -> Annotated:
    vectors = _array(arrays, "annotated.vectors", np.float16, (None, size)).astype(np.float32)
    rows = len(vectors)
    coefficients = _array(arrays, "annotated.coefficients", np.float32, (rows, len(support.labels)))
    sentence = _array(arrays, "annotated.sentence", np.int64, (rows,))
    row = _array(arrays, "annotated.row", np.int64, (rows,))
    spans = [len({(s.start, s.end) for s in (*sentence.spans, *sentence.rejected)}) for sentence in support.sentences]
    places = zip(sentence.tolist(), row.tolist(), strict=True)
    if not all(0 <= number < len(spans) and 0 <= at < spans[number] for number, at in places):
        raise DataError("the annotated spans do not belong to the examples")
    return Annotated(vectors, coefficients, sentence, row)


def _array(arrays: Arrays, name: str, kind: type[Kind], shape: tuple[int | None, ...]) -> npt.NDArray[Kind]:
    array = arrays.get(name)
    if array is None or array.dtype != kind or array.ndim != len(shape):
        raise DataError(f"{name!r} is missing or of another type")
    if any(wanted is not None and wanted != size for wanted, size in zip(shape, array.shape, strict=True)):
        raise DataError(f"{name!r} has another size")
    if issubclass(kind, np.floating) and not float(np.abs(array).max(initial=0)) < LARGEST:  # so for NaN
        raise DataError(f"{name!r} has values that are not finite or far too large")
    return array.astype(kind, copy=False)
