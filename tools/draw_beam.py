"""Draw a search by Beam Soft-NMS, step by step, on candidates that the packaged model found."""

from __future__ import annotations

from dataclasses import replace

from beam_trace import State, trace
from spanshot.decode.conflicts import BeamSoftNMS, KeepAll
from spanshot.decode.decoders import SpanDecoder
from spanshot.formats.examples import parse_examples
from spanshot.research import checkpoint
from spanshot.research.learning.metric import MetricTagger
from spanshot.types import ScoredSpan, Sentence, SupportSet
from spanshot.words import words_of
from svg import AMBER, BLUE, CARD, GREEN, Picture, text_width

EXAMPLES = (
    "The [University of [Toronto](CITY)](ORG) hired [Geoffrey Hinton](PERSON).",
    "[Ada](PERSON) joined the [Bank of [England](CITY)](ORG) in [London](CITY).",
)
TEXT = "The University of Oslo hired Niels Henrik Abel."
SEARCH = BeamSoftNMS(width=2, overlap=0.1, decay=0.4, threshold=0.3)
LEFT, RIGHT, ROW = 30.0, 930.0, 38
NAMES = "abcdefghijklmnop"


def candidates() -> tuple[list[str], list[ScoredSpan]]:
    """Return the words of the sentence and its candidate spans, best first."""
    method = checkpoint.load(checkpoint.embedded_folder()).method
    fitted = method.fit(SupportSet.of(parse_examples(EXAMPLES).sentences))
    assert isinstance(fitted, MetricTagger)
    sentence = Sentence(tuple(word.text for word in words_of(TEXT)))
    (scored,) = replace(fitted, decoder=SpanDecoder(KeepAll()))([sentence])
    return list(sentence.words), sorted(scored, key=lambda candidate: -candidate.score)


def beam_soft_nms() -> Picture:
    """Draw the candidates of a sentence and each step of the search."""
    words, scored = candidates()
    steps = trace(scored, SEARCH)
    top = 96.0
    picture = Picture(960, 0, "Beam Soft-NMS, step by step")
    _draw_candidates(picture, words, scored, top)
    y = top + ROW * len(scored) + 24
    for number, states in enumerate(steps, start=1):
        picture.line(LEFT, y, RIGHT, y)
        action = "Start with single spans" if number == 1 else "Add one span to each set; conflicts lower its score"
        picture.text(LEFT, y + 30, f"Step {number}", 16, bold=True)
        picture.text(LEFT + 70, y + 30, f"{action}. Keep the {SEARCH.width} sets with the best mean.", 14)
        y = _draw_states(picture, states, y + 46, last=number == len(steps)) + 26
    settings = f"beam width {SEARCH.width}, decay {SEARCH.decay:g} per conflict, threshold {SEARCH.threshold:g}"
    legend = f"Solid: kept. Dashed: dropped. Thick: the result. Settings: {settings}."
    picture.text(LEFT, y + 10, legend, 13, faded=True)
    picture.height = int(y + 30)
    return picture


def _draw_candidates(picture: Picture, words: list[str], scored: list[ScoredSpan], top: float) -> None:
    picture.text(LEFT, 36, "Candidate spans of one sentence, with their scores", 16, bold=True)
    widths = [text_width(word, 16) + 22 for word in words]
    starts = [LEFT + 140 + sum(widths[:number]) for number in range(len(words) + 1)]
    for start, width, word in zip(starts, widths, words, strict=False):
        picture.text(start + width / 2, 76, word, 16, "middle")
    for number, candidate in enumerate(scored):
        y = top + ROW * number
        first, last = starts[candidate.span.start], starts[candidate.span.end]
        picture.text(LEFT, y + 20, NAMES[number], 16, bold=True)
        picture.text(LEFT + 22, y + 20, f"{candidate.span.label} {candidate.score:.2f}", 14)
        picture.box(first + 3, y, last - first - 6, 28, (BLUE, GREEN, AMBER)[number % 3])
        picture.text((first + last) / 2, y + 20, NAMES[number], 15, "middle", bold=True)


def _chip(state: State) -> str:
    label = ", ".join(NAMES[number] for number in sorted(state.spans))
    if len(state.spans) == 1:
        return f"{{{label}}}  {state.path_score:.2f}"
    terms = " + ".join(f"{value:.2f}" for value in state.contributions)
    return f"{{{label}}}  ({terms}) / {len(state.spans)} = {state.path_score:.2f}"


def _width(state: State) -> float:
    return text_width(_chip(state), 13.5) + 26


def _draw_states(picture: Picture, states: list[State], y: float, last: bool) -> float:
    x = LEFT
    for number, state in enumerate(states):
        width = _width(state)
        if x + width > RIGHT:
            x, y = LEFT, y + 40
        is_result = last and number == 0
        picture.box(x, y, width, 30, CARD if state.kept else "none", dashed=not state.kept, thick=is_result)
        picture.text(x + width / 2, y + 20, _chip(state), 13.5, "middle", bold=is_result, faded=not state.kept)
        x += width + 12
    return y + 30
