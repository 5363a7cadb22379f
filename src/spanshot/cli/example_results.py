"""Show results on examples: as a table, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.table import Table

from spanshot.cli.console import percent, visible
from spanshot.cli.pages import FOOT, head
from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Interval, share_interval
from spanshot.evaluation.thresholds import Suggestion
from spanshot.examples.leave_one_out import ExampleResults, TaggedExample
from spanshot.json_text import JsonValue
from spanshot.types import Span

MOST_ERRORS = 200
"""Sentences with errors on a page."""
_COLUMNS = ("F1", "precision", "recall", "correct", "missed", "wrong")


@dataclass(frozen=True)
class Evaluation:
    """Results on examples, and how they were obtained."""

    method: str
    """Such as "Leave-one-out"."""
    results: ExampleResults
    thresholds: Mapping[str, Suggestion]

    @property
    def notes(self) -> list[str]:
        """Notes on the figures."""
        notes = ["In parentheses: 95 % intervals."]
        if len(self.results.tagged) < self.results.examples:
            notes.append(f"Sampled {len(self.results.tagged):,} of {self.results.examples:,} examples.")
        if self.results.untested:
            notes.append(f"Labels not measured, because no other example has them: {', '.join(self.results.untested)}.")
        return notes

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all figures for JSON."""
        report = self.results.report.to_dict()
        labels: dict[str, JsonValue] = {
            label: {
                **counts.to_dict(),
                "precision_interval": list(_precision_interval(counts)),
                "recall_interval": list(_recall_interval(counts)),
            }
            for label, counts in self.results.report.labels.items()
        }
        return {
            "method": self.method,
            "examples": self.results.examples,
            "tagged": len(self.results.tagged),
            "total": self.results.report.total.to_dict(),
            "labels": labels,
            "confusions": report["confusions"],
            "untested_labels": list(self.results.untested),
            "thresholds": {label: suggestion.to_dict() for label, suggestion in self.thresholds.items()},
        }


def _rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    report = evaluation.results.report
    for label, counts in [*report.labels.items(), ("all labels", report.total)]:
        yield (visible(label), *_figures(counts))


def _figures(counts: Counts) -> tuple[str, ...]:
    precision = _with_interval(counts.precision, _precision_interval(counts))
    recall = _with_interval(counts.recall, _recall_interval(counts))
    return (percent(counts.f1), precision, recall, str(counts.tp), str(counts.fn), str(counts.fp))


def _precision_interval(counts: Counts) -> Interval:
    return share_interval(counts.tp, counts.tp + counts.fp)


def _recall_interval(counts: Counts) -> Interval:
    return share_interval(counts.tp, counts.tp + counts.fn)


def _with_interval(share: float, interval: Interval) -> str:
    return f"{percent(share)} ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


def _confusions(evaluation: Evaluation) -> list[tuple[str, str, int]]:
    pairs = sorted(evaluation.results.report.confusions.items(), key=lambda item: (-item[1], item[0]))
    return [(gold, predicted, count) for (gold, predicted), count in pairs]


# Terminal


def show_evaluation(out: Console, evaluation: Evaluation) -> None:
    """Print the table, the most frequent confusions and the suggested thresholds."""
    out.print(evaluation.method, style="bold", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("label", overflow="fold")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    *rows, total = _rows(evaluation)
    for row in rows:
        table.add_row(*row)
    table.add_row(*total, style="bold")
    out.print(table, markup=False)
    if confusions := _confusions(evaluation)[:5]:
        pairs = ", ".join(f"{gold} as {predicted} ({count})" for gold, predicted, count in confusions)
        out.print(f"Confused: {pairs}", markup=False, soft_wrap=True)
    for line in evaluation.notes:
        out.print(line, markup=False, soft_wrap=True)
    for label, suggestion in evaluation.thresholds.items():
        out.print(_suggestion(label, suggestion), markup=False, soft_wrap=True)


def _suggestion(label: str, suggestion: Suggestion) -> str:
    return (
        f"Suggested: --threshold {label}={suggestion.threshold:g} "
        f"(F1 {percent(suggestion.f1_before)} -> {percent(suggestion.f1_after)} on these examples)"
    )


# Page

_STYLE = """table { border-collapse: collapse; margin: 0 0 1.5rem; }
th, td { border-top: 1px solid var(--line); padding: .2rem .8rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
tbody tr:last-child td { font-weight: 700; }
.pairs tr:last-child td { font-weight: inherit; }
.pairs td:nth-child(2), .pairs th:nth-child(2) { text-align: left; }
h2 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
article { border-top: 1px solid var(--line); padding: .6rem 0; }
article p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
article ul { margin: .3rem 0 0; padding-left: 1.2rem; }
.missed { color: light-dark(#9a4a00, #f0a860); } .wrong { color: light-dark(#a3123a, #ff8fa8); }
code { font-size: .9em; }"""


def evaluation_page(evaluation: Evaluation, title: str) -> Iterator[str]:
    """Build a page: figures by label, confusions, suggested thresholds, and the sentences with errors."""
    subtitle = f"{evaluation.method}. {len(evaluation.results.tagged):,} sentences. " + " ".join(evaluation.notes)
    yield head(title, subtitle, _STYLE)
    yield _html_table(("label", *_COLUMNS), list(_rows(evaluation)))
    if confusions := _confusions(evaluation):
        yield "<h2>Confusions</h2>\n"
        rows = [(gold, predicted, str(count)) for gold, predicted, count in confusions]
        yield _html_table(("marked as", "found as", "count"), rows, "pairs")
    if evaluation.thresholds:
        yield "<h2>Suggested thresholds</h2>\n<ul>"
        for label, suggestion in evaluation.thresholds.items():
            yield f"<li>{escape(_suggestion(label, suggestion))}</li>\n"
        yield "</ul>\n"
    wrong = [example for example in evaluation.results.tagged if set(example.gold) != set(example.predicted)]
    if wrong:
        number = f"first {MOST_ERRORS} of {len(wrong):,}" if len(wrong) > MOST_ERRORS else f"{len(wrong):,}"
        yield f"<h2>Sentences with errors ({number})</h2>\n"
    yield from (_error(example) for example in wrong[:MOST_ERRORS])
    yield f"</main>\n{FOOT}"


def _html_table(titles: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "figures") -> str:
    top = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n'


def _error(example: TaggedExample) -> str:
    text = example.sentence.with_text().text
    scores = {Span(e.start, e.end, e.label): e.score for e in example.entities}
    missed = sorted(set(example.gold) - set(example.predicted))
    wrong = sorted(set(example.predicted) - set(example.gold))
    items = [f'<li class="missed">missed: {escape(_named(text, span))}</li>' for span in missed]
    items += [f'<li class="wrong">wrong: {escape(_named(text, span))}, score {scores[span]:.2f}</li>' for span in wrong]
    return f"<article><p>{escape(text)}</p><ul>{''.join(items)}</ul></article>\n"


def _named(text: str, span: Span) -> str:
    return f"{span.label} “{text[span.start : span.end]}”"
