"""A project with its suggestions: actions are saved at once, and the suggestions follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from spanshot.errors import ConfigError
from spanshot.json_text import JsonObject, JsonValue
from spanshot.linear_tagger import LinearTagger
from spanshot.tagger import Tagger
from spanshot.ui import view
from spanshot.ui.learning import options_of, support_of
from spanshot.ui.project import Project
from spanshot.ui.worker import Worker

Answer = TypeVar("Answer")


class Session(Worker):
    """Answers the requests of the page."""

    def act(self, action: Callable[[Project], Answer], visible: Sequence[int] = ()) -> Answer:
        """Apply an action to the project, then update the suggestions."""
        with self.lock:
            self.project.state.touched.clear()
            try:
                answer = action(self.project)
            finally:
                self.announce(self.project.state.touched)
            self.version += 1
            if visible:
                self.visible = [number for number in visible if number in self.project.state.texts]
            self.changed.notify_all()
            return answer

    def look(self, visible: Sequence[int]) -> None:
        """Record which texts are visible: their suggestions are updated first."""
        with self.lock:
            self.visible = [number for number in visible if number in self.project.state.texts]

    def try_threshold(self, label: str, threshold: float | None) -> None:
        """Show the effect of a threshold without saving it; None ends that."""
        with self.lock:
            before = self.preview.pop(label, None)
            if threshold is not None:
                self.preview[label] = threshold
            if before != threshold:
                self.version += 1
                self.changed.notify_all()

    def suggested(self, number: int) -> list[view.Suggested]:
        """Return the open suggestions for a text."""
        text = self.project.state.texts[number]
        return view.open_suggestions(text, self.entities.get(number, ()), nested=self.project.state.nested)

    def rows(self, numbers: Iterable[int]) -> list[JsonValue]:
        """Return texts with their spans."""
        with self.lock:
            known = (number for number in numbers if number in self.project.state.texts)
            texts = self.project.state.texts
            return [view.row(texts[at], self.suggested(at), self.revisions.get(at, 1)) for at in known]

    def listed(self, **filters: str) -> list[int]:
        """Return the numbers of the texts that a filter lets through."""
        with self.lock:
            return list(view.listed(self.project.state, self.suggested, **filters))

    def summary(self, since: int = 0) -> JsonObject:
        """Return all that the page shows beside the rows, and the texts that changed since a revision."""
        with self.lock:
            state, history = self.project.state, self.project.history
            linear = self.suggester.tagger.sentence_tagger if self.suggester and self.suggester.tagger else None
            defaults = linear.default_thresholds if isinstance(linear, LinearTagger) else {}
            open_of = [self.suggested(number) for number in state.texts]
            return {
                "revision": self.revision,
                "changed": [number for number, at in self.revisions.items() if at > since] if since else [],
                "name": self.project.file.path.name,
                "path": str(self.project.file.path),
                "texts": len(state.texts),
                "reviewed": sum(text.reviewed is not None for text in state.texts.values()),
                "with_suggestions": sum(map(bool, open_of)),
                "labels": view.labels(state, chain.from_iterable(open_of), defaults, self.report),
                "nested": state.nested,
                "undo": history.done[-1].action if history.done else None,
                "redo": history.undone[-1].action if history.undone else None,
                "actions": history.actions,
                "status": {
                    "state": self.status.state,
                    "done": self.status.done,
                    "total": self.status.total,
                    "error": self.status.error,
                    "finetuning": self.status.finetuning,
                    "finetuned": self.tuned is not None,
                    "current": self.learned == self.version,
                },
            }

    def next_text(self, current: int) -> int | None:
        """Return the text that is most worth annotating next, other than the current one."""
        with self.lock:
            texts = self.project.state.texts
            is_open = [number for number, text in texts.items() if text.reviewed is None and number != current]
            best = next((at for at in self.guide if at != current and texts[at].reviewed is None), None)
            if best is None:
                best = next((at for at in is_open if self.suggested(at)), None)
            return best if best is not None else next(iter(is_open), None)

    def why(self, number: int, start: int, end: int, label: str) -> list[JsonValue]:
        """Return the reasons for a suggestion, weightiest first."""
        with self.lock:
            suggester, text = self.suggester, self.project.state.texts[number].text
            examples = self.examples
        if suggester is None or suggester.tagger is None:
            return []
        records: list[JsonValue] = []
        sentences = suggester.tagger.support.sentences
        for reason in suggester.why(text, start, end, label):
            record: dict[str, JsonValue] = {"kind": reason.kind, "weight": round(reason.weight, 3)}
            example, span = reason.source or (len(examples), None)
            if span is not None and example < len(examples):
                sentence = sentences[example]
                first, last = sentence.offsets[span.start][0], sentence.offsets[span.end - 1][1]
                record |= {"text": examples[example], "start": first, "end": last, "label": span.label}
                record |= {"words": sentence.text[first:last], "example": sentence.text}
            records.append(record)
        return records

    def learn(self) -> Tagger:
        """Return a tagger that learned the examples of the project, as `spanshot.learn` does."""
        with self.lock:
            support, _ = support_of(self.project.state)
            options, tuned, suggester = options_of(self.project.state), self.tuned, self.suggester
        if support is None or suggester is None:
            raise ConfigError("nothing to learn yet; mark a span first")
        return suggester.model.learn_support(support, replace(options, finetune=tuned is not None), tuned=tuned)
