"""Show taggers and their results in notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeVar

from spanshot.errors import InputError
from spanshot.integrations.html import MARK_STYLE, Tagged, colours, marked_html
from spanshot.types import Entity

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

Item = TypeVar("Item")
SHOWN_EXAMPLES = 5
_STYLE = f"<style>{MARK_STYLE.format(scope='.spanshot ')}</style>"
_TEXT = "white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.75"


class Highlighted:
    """Highlighted text: HTML in notebooks, inline markup elsewhere."""

    def __init__(self, html: str, text: str) -> None:
        self.html = html
        self.text = text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


def show(text: str, entities: Iterable[Entity]) -> Highlighted:
    """Highlight entities in a text. As the last line of a notebook cell, the result is rendered.

    >>> show("in Oslo", [Entity("Oslo", "city", 3, 7)])
    in [Oslo](city)
    """
    from spanshot.formats.inline import write_inline

    entities = list(entities)
    for entity in entities:
        if text[entity.start : entity.end] != entity.text:
            raise InputError(
                f"{entity.text!r} is not at characters {entity.start} to {entity.end} of the text; "
                "pass the text that was tagged"
            )
    markup = write_inline(text, [(entity.start, entity.end, entity.label) for entity in entities])
    return Highlighted(entities_html(text, entities), markup)


def entities_html(text: str, entities: Sequence[Entity], labels: Sequence[str] = ()) -> str:
    """Return a text with its entities highlighted. Colours follow ``labels``, by default those of the entities."""
    attributes = _attributes(labels or sorted({entity.label for entity in entities}))
    marked = "".join(marked_html(Tagged(text, entities), attributes))
    return f'<div class="spanshot">{_STYLE}<div style="{_TEXT}">{marked}</div></div>'


def tagger_html(tagger: Tagger) -> str:
    """Return the labels of a tagger with the number of marked examples, its options, and the first few examples."""
    counts = Counter(span.label for sentence in tagger.support.sentences for span in sentence.spans)
    attributes = _attributes(tagger.labels)
    legend = " ".join(
        f"<mark {attributes[label]}>{escape(label)}<small>{counts[label]}</small></mark>" for label in tagger.labels
    )
    items = []
    for sentence in tagger.support.sentences[:SHOWN_EXAMPLES]:
        marked = []
        full = sentence.with_text()
        for span in full.spans:
            start, end = full.offsets[span.start][0], full.offsets[span.end - 1][1]
            marked.append(Entity(full.text[start:end], span.label, start, end))
        items.append(f"<li>{''.join(marked_html(Tagged(full.text, marked), attributes))}</li>")
    hidden = len(tagger.support.sentences) - len(items)
    note = f"<li>… and {hidden} more</li>" if hidden else ""
    options = ", ".join(f"{name}={getattr(tagger.options, name)}" for name in ("nested", "threshold", "finetune"))
    return (
        f'<div class="spanshot">{_STYLE}<p><b>Tagger</b> {legend} <small>{escape(options)}</small></p>'
        f'<ul style="{_TEXT}">{"".join(items)}{note}</ul></div>'
    )


def _attributes(labels: Sequence[str]) -> dict[str, str]:
    """Return the inline style of each label: CSS classes of different results in a notebook would clash."""
    return {label: f'style="--c: {colour}"' for label, colour in colours(labels).items()}


def progress(items: Iterable[Item], total: int | None = None, unit: str = "texts") -> Iterator[Item]:
    """Pass items on and show a progress bar: HTML in a notebook, a line on a terminal, nothing elsewhere."""
    if (display := _notebook_display()) is not None:
        return _notebook_progress(items, total, unit, display)
    return _terminal_progress(items, total, unit)


def _notebook_display() -> object | None:
    """Return IPython's ``display`` if this code runs in a notebook."""
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    function: object = display
    return function


def _notebook_progress(items: Iterable[Item], total: int | None, unit: str, display: object) -> Iterator[Item]:
    from time import monotonic

    from IPython.display import HTML

    def bar(done: int) -> HTML:
        share = f'value="{done}" max="{total}"' if total else ""
        label = f"{done:,} of {total:,} {unit}" if total else f"{done:,} {unit}"
        return HTML(f"<progress {share}></progress> {escape(label)}")

    assert callable(display)
    handle = display(bar(0), display_id=True)
    updated, done = monotonic(), 0
    for done, item in enumerate(items, start=1):
        yield item
        if monotonic() - updated > 0.2:
            handle.update(bar(done))
            updated = monotonic()
    total = done
    handle.update(bar(done))


def _terminal_progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        task = bars.add_task(unit, total=total)
        for item in items:
            yield item
            bars.advance(task)
