"""Choose thresholds for a target precision, from leave-one-out results and the calibrated scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spanshot.errors import ConfigError, EpisodeError, SpanshotWarning
from spanshot.examples.held_out import HeldOut
from spanshot.examples.leave_one_out import ExampleResults
from spanshot.learner import LinearLearner
from spanshot.types import LearnOptions, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model
    from spanshot.tagger import Tagger

PRIOR = 4.0
"""Weight of the scores in an estimate, in suggestions: a few right or wrong ones prove little."""
LEAST = 0.5
"""Lowest threshold, as a multiple of the target: new texts have more low scores than the examples."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The threshold of a label, and the precision to expect with it."""

    threshold: float
    precision: float
    suggestions: int = 0
    """Number of suggestions in the examples with at least this score."""
    right: int = 0
    """Number of these that are right."""

    def expectation(self) -> str:
        """Describe the expected precision, for messages."""
        if not self.suggestions:
            return "in leave-one-out, no suggestion has a score that is high enough"
        return (
            f"expect about {self.precision:.2f} with the threshold {self.threshold:.2f} (in leave-one-out, "
            f"{self.right} of {self.suggestions} suggestions are right)"
        )


def learn_with_precision(model: Model, support: SupportSet, options: LearnOptions) -> Tagger:
    """Learn a support set with thresholds for ``options.precision``; warn of labels that do not reach it."""
    target = options.precision
    assert target is not None
    if not isinstance(model.method, LinearLearner):
        raise ConfigError("this model cannot aim at a precision; use `threshold`, which evaluate-examples suggests")
    open_options = replace(options, precision=None, threshold=None)
    held_out = HeldOut.of(model, support, open_options)
    try:
        results = held_out.results()
    except EpisodeError:  # too few examples to leave one out: the scores decide
        results = ExampleResults((), len(support.sentences))
    choices = choose_thresholds(results, support.labels, target)
    for label, choice in choices.items():
        if choice.precision < target:
            message = f"precision {target:g} cannot be reached for {label!r}: {choice.expectation()}; add examples"
            warnings.warn(message, SpanshotWarning, stacklevel=4)
    chosen = replace(open_options, threshold={label: choice.threshold for label, choice in choices.items()})
    tagger = model.learn_support(support, chosen, known=held_out.linear)
    return replace(tagger, options=replace(chosen, precision=target))


def choose_thresholds(results: ExampleResults, labels: tuple[str, ...], target: float) -> Mapping[str, Choice]:
    """Return for each label the lowest threshold with the target precision, or else the one with the highest."""
    scored: dict[str, list[tuple[float, bool]]] = {label: [] for label in labels}
    for example in results.tagged:
        gold = set(example.gold)
        for entity in example.of_any_score:
            scored[entity.label].append((entity.score, Span(entity.start, entity.end, entity.label) in gold))
    return {label: _choice(sorted(pairs, reverse=True), target) for label, pairs in scored.items()}


def _choice(scored: list[tuple[float, bool]], target: float) -> Choice:
    """Choose a threshold from scores and their correctness, the highest score first.

    A label that was not tested gets the target as its threshold: scores are probabilities.

    >>> _choice([(0.9, True), (0.8, True), (0.7, True), (0.4, False), (0.3, False)], 0.8).threshold
    0.55
    >>> _choice([], 0.9)
    Choice(threshold=0.9, precision=0.9, suggestions=0, right=0)
    """
    lowest = LEAST * target
    fitting: list[Choice] = []
    best = Choice(target, 0.0)
    right, total = 0, 0.0
    for count, (score, is_right) in enumerate(scored, start=1):
        if score < lowest:
            break
        right += is_right
        total += score
        following = scored[count][0] if count < len(scored) else 0.0
        if following == score:
            continue
        estimate = (right + PRIOR * total / count) / (count + PRIOR)
        choice = Choice(round(max((score + following) / 2, lowest), 4), estimate, count, right)
        if estimate >= target:
            fitting.append(choice)
        if estimate > best.precision:
            best = choice
    if fitting:
        return fitting[-1]
    return best if scored else Choice(target, target)
