"""Simulate a user who annotates sentences with `spanshot ui`, and count the actions.

    python benchmarks/annotation_run.py FOLDER [--domains NAME ...] [--sentences 100]

FOLDER holds episode files such as NAME_5.jsonl. An oracle takes the first sentences of a file and annotates them
completely, in order, with the suggestions of the page, which are updated after each sentence. An action is a key, a
click or a drag. By hand, a span costs two (select it, press the key of its label), and a sentence one (done). With
suggestions, the oracle takes the cheaper of two ways for each sentence:

- decide one by one: accept (1), give another label (1), resize (2), reject a wrong one (1), mark a missing span (2),
  and end with X, which rejects what is left (1);
- correct first: click and reject a wrong one (2), click and change a label (2), resize (2), mark a missing span (2),
  then Space, which accepts what is left (1).

A span of a new label costs two actions, too: typing the name is the same in both cases.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.formats.documents import Document
from spanshot.model import embedded_model
from spanshot.types import Sentence, Span
from spanshot.ui.learning import options_of, support_of
from spanshot.ui.project import Project
from spanshot.ui.state import Marked
from spanshot.ui.suggestions import Suggester
from spanshot.ui.view import open_suggestions

DOMAINS = ("tasteset_recipes", "annoctr_threat_reports", "nlupp_slots")


@dataclass
class Actions:
    """Actions for a number of sentences."""

    sentences: int = 0
    spans: int = 0
    by_hand: int = 0
    assisted: int = 0

    @property
    def saving(self) -> float:
        """Share of the actions by hand that were not needed."""
        return 1 - self.assisted / self.by_hand if self.by_hand else 0.0


def read(path: Path, count: int) -> list[Sentence]:
    """Return the first sentences of an episode file, each once."""
    sentences: dict[tuple[str, ...], Sentence] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        episode = json.loads(line)
        for part in ("support", "query"):
            for words, spans in zip(episode[part]["word"], episode[part]["spans"], strict=True):
                sentence = Sentence(tuple(words), tuple(Span(*span) for span in spans)).with_text()
                sentences.setdefault(sentence.words, sentence)
    return list(sentences.values())[:count]


def gold(sentence: Sentence) -> set[Marked]:
    """Return the spans of a sentence in characters."""
    at = sentence.offsets
    return {Marked(at[span.start][0], at[span.end - 1][1], span.label) for span in sentence.spans}


def cost(wanted: set[Marked], suggested: set[Marked]) -> int:
    """Return the number of actions to annotate a sentence, given suggestions."""
    missing = wanted - suggested
    answers: list[str] = []
    for span in sorted(suggested):
        same_place = next((m for m in missing if (m.start, m.end) == (span.start, span.end)), None)
        near = next((m for m in sorted(missing) if m.label == span.label and m.overlaps(span.start, span.end)), None)
        if span in wanted:
            answers.append("accept")
        elif same_place or near:
            answers.append("relabel" if same_place else "resize")
            missing.discard(same_place or near or span)
        else:
            answers.append("reject")
    useful = [at for at, answer in enumerate(answers) if answer != "reject"]
    needed = answers[: useful[-1] + 1] if useful else []  # X rejects those at the end
    one_by_one = sum(2 if answer == "resize" else 1 for answer in needed) + 2 * len(missing) + 1
    correct_first = sum(2 for answer in answers if answer != "accept") + 2 * len(missing) + 1
    return min(one_by_one, correct_first)


def simulate(sentences: Sequence[Sentence]) -> Iterator[Actions]:
    """Annotate sentences one after the other, and yield the actions so far after each."""
    suggester = Suggester(embedded_model(), [sentence.text for sentence in sentences])
    actions = Actions()
    with tempfile.TemporaryDirectory() as folder:
        project = Project.open(Path(folder) / "run.spanshot.jsonl")
        project.add_texts([Document(sentence.text) for sentence in sentences])
        for number, sentence in enumerate(sentences, start=1):
            suggested: set[Marked] = set()
            support, _ = support_of(project.state)
            if support is not None:
                suggester.learn(support, options_of(project.state))
                ((_, entities),) = suggester.suggestions([number - 1])
                suggestions = open_suggestions(project.state.texts[number], entities, nested=False)
                suggested = {span for span, _ in suggestions}
            wanted = gold(sentence)
            actions.sentences += 1
            actions.spans += len(wanted)
            actions.by_hand += 2 * len(wanted) + 1
            actions.assisted += cost(wanted, suggested)
            project.review(number, accept=sorted(wanted), reject=sorted(suggested - wanted))
            yield actions
        project.close()


def main() -> None:
    """Run the simulation for each domain and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--domains", nargs="+", default=list(DOMAINS))
    parser.add_argument("--sentences", type=int, default=100)
    arguments = parser.parse_args()
    print(f"{'domain':28} {'sentences':>9} {'spans':>6} {'by hand':>8} {'page':>6} {'saving':>7}  second half")
    for name in arguments.domains:
        half = Actions()
        actions = Actions()
        for actions in simulate(read(arguments.folder / f"{name}_5.jsonl", arguments.sentences)):
            if actions.sentences == arguments.sentences // 2:
                half = Actions(actions.sentences, actions.spans, actions.by_hand, actions.assisted)
        later = Actions(by_hand=actions.by_hand - half.by_hand, assisted=actions.assisted - half.assisted)
        print(
            f"{name:28} {actions.sentences:9} {actions.spans:6} {actions.by_hand:8} {actions.assisted:6} "
            f"{actions.saving:7.0%}  {later.saving:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
