"""Keep the suggestions for a project up to date, in a thread of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from spanshot.errors import ConfigError, EpisodeError, SpanshotError
from spanshot.evaluation.report import Report
from spanshot.examples.held_out import HeldOut
from spanshot.examples.leave_one_out import TaggedExample
from spanshot.examples.suggest import order
from spanshot.json_text import JsonObject
from spanshot.model import Model
from spanshot.types import Entity, Learner, LearnOptions, SupportSet
from spanshot.ui.learning import options_of, support_of
from spanshot.ui.project import Project
from spanshot.ui.suggestions import MOST_HELD_OUT, Suggester

log = logging.getLogger(__name__)

MOST_GUIDED = 600
"""Texts among which the next one worth annotating is chosen."""
MOST_TESTED = 200
"""Examples that are held out to measure precision and recall."""
PAUSE = 0.6
"""Seconds without an action before results that take longer are computed."""
PUBLISH_EVERY = 0.3


class _OutdatedError(Exception):
    """The project has changed; the work starts again."""


@dataclass
class Status:
    """What the thread does."""

    state: str = "loading"
    """``loading`` (the model), ``learning``, ``reading`` (new texts), ``ready``, or ``waiting`` for a first label."""
    done: int = 0
    total: int = 0
    error: str = ""
    finetuning: JsonObject | None = None
    """Steps done and in total, and a message when it has ended."""


@dataclass
class _Task:
    """A snapshot of the project for the thread."""

    version: int
    suggester: Suggester
    support: SupportSet | None
    examples: list[int]
    """The texts of the examples."""
    options: LearnOptions
    undecided: list[int]
    """Texts to suggest entities for."""
    reviewed: set[int]


class Worker:
    """A project, its suggestions, and a revision number that grows with each change."""

    def __init__(self, project: Project, load: Callable[[], Model]) -> None:
        self.project = project
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.revision = 1
        self.revisions: dict[int, int] = {}
        self.entities: dict[int, list[Entity]] = {}
        self.listeners: set[Callable[[], None]] = set()
        """Called after each change."""
        self.status = Status()
        self.guide: list[int] = []
        self.report: Report | None = None
        self.preview: dict[str, float] = {}
        self.visible: list[int] = []
        self.suggester: Suggester | None = None
        self.tuned: Learner | None = None
        self.learned = 0
        """The version of the project that the suggestions belong to."""
        self.scored = 0
        """How often the suggestions for the visible texts were updated."""
        self.version = 1
        self.examples: list[int] = []
        """The texts that the suggestions were learned from."""
        self._load = load
        self._stopping = False
        self._texts = 0
        self._thread = threading.Thread(target=self._run, name="suggestions", daemon=True)

    def start(self) -> None:
        """Start to suggest entities."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and close the project."""
        with self.lock:
            self._stopping = True
            self.changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self.project.close()

    def finetune(self) -> None:
        """Fine-tune a copy of the model on the examples, in a thread of its own."""
        with self.lock:
            running = self.status.finetuning
            if running is not None and not running.get("message"):
                raise ConfigError("fine-tuning is already running")
            support, _ = support_of(self.project.state)
            if support is None or self.suggester is None:
                raise ConfigError("nothing to fine-tune on yet; mark a few spans first")
            options, model = options_of(self.project.state), self.suggester.model
            self._finetuning(0, 0, "")
        threading.Thread(target=self._finetune, args=(model, support, options), daemon=True).start()

    def _finetune(self, model: Model, support: SupportSet, options: LearnOptions) -> None:
        message = "Fine-tuning skipped: it needs about 5 examples per label, or it did not help."
        try:
            tuned = model.finetuned(support, options, lambda done, total: self._finetuning(done, total, ""))
            if tuned is not None:
                suggester = Suggester(model, tuned=tuned)
                with self.lock:
                    self.tuned, self.suggester, self._texts = tuned, suggester, 0
                    self.version += 1
                    self.changed.notify_all()
                message = "Fine-tuned. Suggestions come from the fine-tuned model now."
        except SpanshotError as error:
            message = str(error)
        except Exception as error:
            log.exception("fine-tuning failed")
            message = f"Fine-tuning failed: {error}"
        self._finetuning(1, 1, message)

    def _finetuning(self, done: int, total: int, message: str) -> None:
        with self.lock:
            self.status.finetuning = {"done": done, "total": total, "message": message}
            self.announce(())

    def _run(self) -> None:
        try:
            suggester = Suggester(self._load())
        except SpanshotError as error:
            self._set("ready", error=str(error))
            return
        with self.lock:
            self.suggester = suggester
        while True:
            with self.lock:
                while not self._stopping and self.learned == self.version:
                    self.changed.wait()
                if self._stopping:
                    return
                task = self._task()
            try:
                self._work(task)
            except _OutdatedError:
                continue
            except SpanshotError as error:
                self._set("ready", error=str(error))
                self.learned = task.version
            except Exception as error:
                log.exception("suggestions failed")
                self._set("ready", error=f"suggestions failed: {error}")
                self.learned = task.version

    def _task(self) -> _Task:
        """Take a snapshot of the project, whose new texts the suggester gets to know; the lock is held."""
        suggester = self.suggester
        assert suggester is not None
        state = self.project.state
        support, examples = support_of(state)
        options = options_of(state)
        if self.preview:
            limits = options.threshold if isinstance(options.threshold, dict) else {}
            tried = {label: limit for label, limit in self.preview.items() if label in state.labels}
            options = replace(options, threshold={**limits, **tried})
        undecided = [at for at, text in state.texts.items() if text.reviewed is None]
        new = [text.text for text in list(state.texts.values())[self._texts :]]
        self._texts = len(state.texts)
        suggester.add(new)
        reviewed = {at for at in examples if state.texts[at].reviewed is not None}
        return _Task(self.version, suggester, support, examples, options, undecided, reviewed)

    def _work(self, task: _Task) -> None:
        suggester = task.suggester
        if task.support is None:
            self._publish({at: [] for at in list(self.entities)})
            with self.lock:
                self.learned = task.version
            self._set("waiting")
            return
        self._set("learning")
        suggester.learn(task.support, task.options)
        with self.lock:
            self.examples = task.examples
            visible = set(self.visible)
        for is_near in (True, False):  # visible texts first
            near = [number for number in task.undecided if (number in visible) is is_near]
            held_out = self._held_out(task, near)
            self._score(task, [number - 1 for number in near if number not in held_out])
            self._publish({at + 1: entities for at, entities in suggester.in_progress(list(held_out.values()))})
            with self.lock:
                self.scored += is_near
                self.changed.notify_all()
        with self.lock:
            if self.version == task.version:
                self.learned = task.version
        self._set("ready")
        self._pause(task)
        self._guide(task)
        self._test(task)

    def _held_out(self, task: _Task, numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the texts in progress among some texts, with their positions among the texts and the examples."""
        if len(task.examples) < 2:
            return {}
        example_of = {number: at for at, number in enumerate(task.examples)}
        in_progress = [number for number in numbers if number in example_of][:MOST_HELD_OUT]
        return {number: (number - 1, example_of[number]) for number in in_progress}

    def _score(self, task: _Task, positions: Sequence[int]) -> None:
        """Update the suggestions for the texts at these positions."""
        ready: dict[int, list[Entity]] = {}
        published = time.monotonic()
        for count, (at, entities) in enumerate(task.suggester.suggestions(positions), start=1):
            ready[at + 1] = entities
            if count % 32 == 0:
                self._check(task)
            if time.monotonic() - published > PUBLISH_EVERY:
                self._publish(ready)
                self._set("reading", done=count, total=len(positions))
                ready, published = {}, time.monotonic()
        self._publish(ready)

    def _guide(self, task: _Task) -> None:
        """Choose the texts that are most worth annotating next."""
        tagger = task.suggester.tagger
        with self.lock:
            texts = self.project.state.texts
            untouched = [at for at in task.undecided if not texts[at].touched]
            numbers = untouched[:: max(1, len(untouched) // MOST_GUIDED)][:MOST_GUIDED]
            contents = [texts[at].text for at in numbers]
        if tagger is not None and numbers:
            best = [numbers[at] for at in order(tagger, contents)]
            with self.lock:
                self.guide = best

    def _test(self, task: _Task) -> None:
        """Measure precision and recall of each label by leave-one-out."""
        self._check(task)
        assert task.suggester.tagger is not None
        try:
            results = HeldOut(task.suggester.tagger).results(lambda *_: self._check(task), limit=MOST_TESTED)
        except EpisodeError:  # too few examples
            return
        # Texts in progress lack marks, so only reviewed ones count, as soon as there are some.
        reviewed = [example for example in results.tagged if task.examples[example.number] in task.reviewed]
        with self.lock:
            self.report = report_of(reviewed if len(reviewed) > 1 else results.tagged)
            self.announce(())

    def _pause(self, task: _Task) -> None:
        deadline = time.monotonic() + PAUSE
        with self.lock:
            while (left := deadline - time.monotonic()) > 0:
                self.changed.wait(left)
                self._check(task)

    def _check(self, task: _Task) -> None:
        if self._stopping or self.version != task.version:
            raise _OutdatedError

    def _publish(self, entities_of: dict[int, list[Entity]]) -> None:
        with self.lock:
            changed = {at: new for at, new in entities_of.items() if self.entities.get(at, []) != new}
            self.entities |= changed
            if changed:
                self.announce(changed)

    def _set(self, state: str, *, done: int = 0, total: int = 0, error: str = "") -> None:
        with self.lock:
            self.status.state, self.status.done, self.status.total, self.status.error = state, done, total, error
            self.announce(())

    def announce(self, numbers: Iterable[int]) -> None:
        """Count a change of some texts, or of the status, and wake everyone who waits for it; the lock is held."""
        self.revision += 1
        self.revisions.update(dict.fromkeys(numbers, self.revision))
        self.changed.notify_all()
        for listener in list(self.listeners):
            listener()


def report_of(tagged: Iterable[TaggedExample]) -> Report:
    """Count right and wrong spans of the labels that were looked for in each text."""
    pairs = []
    for example in tagged:
        labels = example.sentence.annotated
        predicted = [span for span in example.predicted if labels is None or span.label in labels]
        pairs.append((example.gold, predicted))
    return Report.of_sentences(pairs)
