"""Draw a search by Beam Soft-NMS, step by step, from its trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beam_trace import CLOSED, PAPER_NAMES, PAPER_SEARCH, PAPER_SPANS, State, paper_decay, trace
from spanshot.types import ScoredSpan
from svg import AMBER, BLUE, CARD, GREEN, Picture, text_width

LEFT, RIGHT, ROW, LINE = 30.0, 930.0, 38, 40


@dataclass(frozen=True)
class Search:
    """A search to draw: the words and candidates of a sentence, the steps, and how the candidates are called."""

    title: str
    words: Sequence[str]
    candidates: Sequence[ScoredSpan]
    names: str
    steps: Sequence[Sequence[State]]
    width: int
    settings: str


def paper_example() -> Picture:
    """Draw the search in the captions of the paper's figure 3 and appendix D."""
    steps = trace(PAPER_SPANS, PAPER_SEARCH, PAPER_NAMES, paper_decay)
    words = ["w1", "w2", "w3", "w4", "w5", "w6", "w7"]
    settings = f"beam width {PAPER_SEARCH.width}, threshold {PAPER_SEARCH.threshold:g}, \u22120.1 per conflict"
    title = "The paper's example of Beam Soft-NMS"
    return draw(Search(title, words, PAPER_SPANS, PAPER_NAMES, steps, PAPER_SEARCH.width, settings))


def draw(search: Search) -> Picture:
    """Draw the candidates of a sentence and each step of the search."""
    top = 96.0
    picture = Picture(960, 0, search.title)
    _draw_candidates(picture, search, top)
    y = top + ROW * len(search.candidates) + 24
    for number, states in enumerate(search.steps, start=1):
        picture.line(LEFT, y, RIGHT, y)
        action = "Start with single spans" if number == 1 else "Add one span to each set; conflicts lower its score"
        picture.text(LEFT, y + 30, f"Step {number}", 16, bold=True)
        picture.text(LEFT + 70, y + 30, f"{action}. Keep the {search.width} sets with the best mean.", 14)
        y = _draw_states(picture, search, states, y + 46, last=number == len(search.steps)) + 26
    legend = "Solid: in the beam. Dashed: not, with the reason. Thick: the result."
    picture.text(LEFT, y + 10, legend, 13, faded=True)
    picture.text(LEFT, y + 30, f"Settings: {search.settings}.", 13, faded=True)
    picture.height = int(y + 50)
    return picture


def _draw_candidates(picture: Picture, search: Search, top: float) -> None:
    picture.text(LEFT, 36, "Candidate spans of one sentence, with their scores", 16, bold=True)
    widths = [text_width(word, 16) + 22 for word in search.words]
    starts = [LEFT + 140 + sum(widths[:number]) for number in range(len(widths) + 1)]
    for start, width, word in zip(starts, widths, search.words, strict=False):
        picture.text(start + width / 2, 76, word, 16, "middle")
    for number, candidate in enumerate(search.candidates):
        y = top + ROW * number
        name = search.names[number]
        first, last = starts[candidate.span.start], starts[candidate.span.end]
        picture.text(LEFT, y + 20, name, 16, bold=True)
        picture.text(LEFT + 22, y + 20, f"{candidate.span.label} {candidate.score:.2f}", 14)
        picture.box(first + 3, y, last - first - 6, 28, (BLUE, GREEN, AMBER)[number % 3])
        picture.text((first + last) / 2, y + 20, name, 15, "middle", bold=True)


def _chip(search: Search, state: State) -> str:
    name = state.name(search.names)
    if state.fate == CLOSED:
        return f"{name}: {state.path_score:.2f}, nothing can join"
    if len(state.spans) == 1:
        scored = f"{state.path_score:.2f}"
    else:
        terms = " + ".join(f"{value:.2f}" for value in state.contributions)
        scored = f"({terms}) / {len(state.spans)} = {state.path_score:.2f}"
    if state.kept:
        return f"{name}: {scored}"
    return f"{name}: {state.reason}" if state.fate == "filtered" else f"{name}: {scored}, {state.reason}"


def _width(search: Search, state: State) -> float:
    return text_width(_chip(search, state), 13.5) + 26


def _lines(search: Search, states: Sequence[State]) -> list[list[State]]:
    """Arrange the states of a step in lines."""
    lines: list[list[State]] = [[]]
    x = LEFT
    for state in states:
        width = _width(search, state)
        if lines[-1] and x + width > RIGHT:
            lines.append([])
            x = LEFT
        lines[-1].append(state)
        x += width + 12
    return lines


def _draw_states(picture: Picture, search: Search, states: Sequence[State], y: float, last: bool) -> float:
    for row, line in enumerate(_lines(search, states)):
        x, top = LEFT, y + LINE * row
        for state in line:
            width = _width(search, state)
            is_result = last and state is states[0]
            picture.box(x, top, width, 30, CARD if state.kept else "none", dashed=not state.kept, thick=is_result)
            text = _chip(search, state)
            picture.text(x + width / 2, top + 20, text, 13.5, "middle", bold=is_result, faded=not state.kept)
            x += width + 12
    return y + LINE * (len(_lines(search, states)) - 1) + 30
