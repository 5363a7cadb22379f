"""The loss of an episode through the linear head: fit it to the support's spans, score the query's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spanshot.decode.scores import Bounds
from spanshot.engine.pieces import HIDDEN
from spanshot.research.nn.linear_head import Fitted, HeadSettings, fit
from spanshot.research.nn.spans import bounds_up_to
from spanshot.types import Sentence

FOCAL_BALANCE = 0.75  # weight of marked spans; others have the rest
FOCAL_POWER = 1.0
HARD_ROWS = 160
"""Unmarked support spans that are always rows of the regression: those most like a marked one."""
RANDOM_ROWS = 128
"""Further unmarked support spans, drawn at random and weighted to represent all the rest."""
NAME_LIKENESS = 0.02  # as in ``heads.fit.choose_rows``
_BASE = np.int64(6364136223846793005)  # of the polynomial that numbers texts


@dataclass(frozen=True, slots=True)
class PoolSpans:
    """The spans of several sentences: their vectors, labels, sentences and texts."""

    vectors: Tensor  # [spans, size]
    marked: Tensor  # [spans, labels], 0 or 1
    sentence: Tensor  # [spans]
    text: Tensor  # [spans]: equal numbers for equal texts


@dataclass(frozen=True, slots=True)
class Names:
    """The prior of some labels."""

    weights: Tensor  # [labels, size]
    bias: Tensor  # [labels]
    named: bool
    """False for labels whose names are hidden."""


def candidates(sentence: Sentence, longest: int) -> Bounds:
    """Return all spans of up to ``longest`` words, and longer ones that are marked or rejected. [spans, 2]"""
    bounds = bounds_up_to(len(sentence.words), longest)
    annotated = (*sentence.spans, *sentence.rejected)
    longer = sorted({(span.start, span.end) for span in annotated if len(span) > longest})
    return np.concatenate([bounds, np.array(longer, np.int64)]) if longer else bounds


def marks(sentence: Sentence, bounds: Bounds, columns: dict[str, int]) -> np.ndarray:
    """Return which labels each candidate has, by the column of each label. [spans, labels]"""
    marked = np.zeros((len(bounds), len(columns)), bool)
    if sentence.spans:
        place = {(start, end): row for row, (start, end) in enumerate(bounds.tolist())}
        for span in sentence.spans:
            if span.label in columns:
                marked[place[span.start, span.end], columns[span.label]] = True
    return marked


def text_numbers(sentences: Sequence[Sentence], bounds: Sequence[Bounds]) -> np.ndarray:
    """Return a number per span that is the same for spans of the same text, ignoring case. [spans]

    A span with a hidden word is like no other.
    """
    number_of: dict[str, int] = {}
    hidden = 0
    numbers = []
    with np.errstate(over="ignore"):
        for sentence, sentence_bounds in zip(sentences, bounds, strict=True):
            prefix = np.zeros(len(sentence.words) + 1, np.int64)
            for place, word in enumerate(sentence.words):
                if word == HIDDEN:
                    hidden += 1
                    value = -hidden
                else:
                    value = number_of.setdefault(word.casefold(), len(number_of) + 1)
                prefix[place + 1] = prefix[place] * _BASE + np.int64(value)
            powers = np.cumprod(np.full(len(sentence.words) + 1, _BASE))
            starts, ends = sentence_bounds[:, 0], sentence_bounds[:, 1]
            numbers.append(prefix[ends] - prefix[starts] * powers[ends - starts - 1])
    return np.concatenate(numbers)


def focal(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the summed focal loss of independent yes-or-no decisions (Lin et al. 2017)."""
    signed = torch.where(targets > 0.5, logits, -logits)
    balance = torch.where(targets > 0.5, FOCAL_BALANCE, 1 - FOCAL_BALANCE)
    return (balance * (1 - signed.sigmoid()) ** FOCAL_POWER * F.softplus(-signed)).sum()


def names_loss(spans: PoolSpans, names: Names, sentences: int) -> Tensor:
    """Return the loss of labels that are known by name alone, over all sentences."""
    logits = spans.vectors @ names.weights.T + names.bias
    return focal(logits, spans.marked) / (0.5 * (float(spans.marked.sum()) + sentences))


def episode_loss(
    settings: HeadSettings,
    spans: PoolSpans,
    labels: Tensor,
    support: Sequence[int],
    query: Sequence[int],
    names: Names,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the loss on the query sentences after fitting the head to the support sentences.

    ``labels`` are columns of ``spans.marked``, of which ``names`` is the prior. Rows drawn at random come from the
    generator.
    """
    device = spans.sentence.device
    in_support = torch.isin(spans.sentence, torch.tensor(support, device=device)).nonzero().squeeze(1)
    in_query = torch.isin(spans.sentence, torch.tensor(query, device=device))
    marked = spans.marked[in_support][:, labels]  # [support spans, labels]
    fitted = _fit(settings, spans.vectors, in_support, marked, names, generator)
    shares = _text_shares(spans.text[in_support], marked, spans.text[in_query])
    logits = settings.final(fitted.scores(spans.vectors[in_query]), marked.sum(0), shares)
    targets = spans.marked[in_query][:, labels]
    return focal(logits, targets) / (0.5 * (float(targets.sum()) + len(query)))


def _fit(
    settings: HeadSettings,
    vectors: Tensor,
    support: Tensor,
    marked: Tensor,
    names: Names,
    generator: torch.Generator | None,
) -> Fitted:
    """Fit the head to support spans, of which ``marked`` [support spans, labels] gives the labels."""
    any_label = marked.amax(1) > 0
    positive = any_label.nonzero().squeeze(1)
    background = (~any_label).nonzero().squeeze(1)
    chosen, stands_for = background, torch.ones(len(background), device=marked.device)
    if len(background):
        with torch.no_grad():
            rows = vectors[support]
            likeness = (rows[background] @ rows[positive].T).amax(1)
            likeness += NAME_LIKENESS * (rows[background] @ names.weights.T + names.bias).amax(1)
        picks, stands_for = _background_rows(likeness, generator)
        chosen = background[picks]
    picked = torch.cat([positive, chosen])
    share = settings.log_background.exp() * len(positive) / max(1, len(background))
    row_weights = torch.cat([torch.ones(len(positive), device=marked.device), stands_for * share])
    return fit(
        vectors[support[picked]],
        marked[picked].T,
        row_weights.expand(marked.shape[1], -1),
        names.weights,
        names.bias,
        settings.penalties(names.named),
    )


def _background_rows(likeness: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Choose the rows most similar to an example and a sample of the rest; return them with their weights."""
    device = likeness.device
    if len(likeness) <= HARD_ROWS + RANDOM_ROWS:
        return torch.arange(len(likeness), device=device), torch.ones(len(likeness), device=device)
    order = likeness.argsort(descending=True)
    easy = order[HARD_ROWS:]
    drawn = easy[torch.randperm(len(easy), generator=generator)[:RANDOM_ROWS].to(device)]
    stands_for = torch.full((HARD_ROWS + RANDOM_ROWS,), len(easy) / RANDOM_ROWS, device=device)
    stands_for[:HARD_ROWS] = 1.0
    return torch.cat([order[:HARD_ROWS], drawn]), stands_for


def _text_shares(support_texts: Tensor, marked: Tensor, query_texts: Tensor) -> Tensor:
    """Return, per query span and label, the share of its text's occurrences in the support that have the label."""
    marked_texts = torch.unique(support_texts[marked.amax(1) > 0])  # sorted
    place = torch.searchsorted(marked_texts, support_texts).clamp_max(len(marked_texts) - 1)
    same = marked_texts[place] == support_texts
    totals = marked.new_zeros(len(marked_texts)).index_add(0, place[same], marked.new_ones(int(same.sum())))
    shares = marked.new_zeros(len(marked_texts), marked.shape[1]).index_add(0, place[same], marked[same])
    place = torch.searchsorted(marked_texts, query_texts).clamp_max(len(marked_texts) - 1)
    is_marked: Tensor = marked_texts[place] == query_texts
    return (shares / totals.unsqueeze(1))[place] * is_marked.unsqueeze(1)
