"""The learner of the ground floor: fits a linear head to the span vectors of a support set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np

from spanshot.engine.encoder import SpanEncoder
from spanshot.engine.files import EngineSettings, default_dtype, open_encoder
from spanshot.engine.layout import ENGINE, digest_of
from spanshot.engine.names import name_to_encode
from spanshot.engine.spans import Bounds, candidate_widths, candidates, with_spans
from spanshot.errors import CheckpointError, SpanshotError
from spanshot.heads.fit import MOST_ROWS, choose_rows, fit
from spanshot.heads.linear import Array, Bools, Prior, Rows
from spanshot.linear_tagger import PIECES_PER_WORD, LinearTagger
from spanshot.optional import missing
from spanshot.types import LearnOptions, Progress, Sentence, SentenceTagger, SupportSet

Files = Mapping[str, bytes]
DEFAULT = LearnOptions()


class LinearLearner:
    """A model on onnxruntime. It has the surface of the methods on the upper floor, so a `Model` can hold either.

    ``files`` returns the model's files; they are read again when needed instead of being kept in memory.
    """

    name = "linear"
    needs_examples = False
    can_refit = True
    """`fit` takes a tagger that has learned some of the sentences."""

    def __init__(
        self,
        encoder: SpanEncoder,
        settings: EngineSettings,
        digest: str,
        files: Callable[[], Files],
        dtype: str = "float32",
    ) -> None:
        self.encoder = encoder
        self.settings = settings
        self.digest = digest
        self.files = files
        self.dtype = dtype

    @classmethod
    def open(
        cls,
        files: Files,
        reread: Callable[[], Files] | None = None,
        *,
        digest: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> LinearLearner:
        """Open the files of a model. Every problem is a `CheckpointError`."""
        dtype = dtype or default_dtype()
        if ENGINE not in files:
            raise CheckpointError(f"the model has no file {ENGINE!r}")
        try:
            settings = EngineSettings.parse(files[ENGINE].decode("utf-8"))
        except UnicodeDecodeError as problem:
            raise CheckpointError(f"{ENGINE}: not UTF-8 at byte {problem.start}") from None
        except SpanshotError as problem:
            raise CheckpointError(f"{ENGINE}: {problem}") from None
        encoder = open_encoder(files, settings, dtype, threads)
        if reread is None:
            reread = _Kept(dict(files))
        return cls(encoder, settings, digest or digest_of(files), reread, dtype)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the model's files, or where the package holds them."""
        return _reopened, (self.files, self.digest, self.dtype)

    def equals(self, other: object) -> bool:
        """Return whether another learner has the same files and dtype."""
        return isinstance(other, LinearLearner) and self.digest == other.digest and self.dtype == other.dtype

    def finetuned(self, support: SupportSet, progress: Progress | None = None) -> LinearLearner | None:
        """Return a copy, fine-tuned on a support set; None if the set is too small. This needs torch."""
        try:
            from spanshot.research.export_model import finetuned_files
        except ModuleNotFoundError as problem:
            if (problem.name or "").startswith("spanshot"):
                raise
            raise missing(problem.name, "train", "fine-tuning") from None
        support.check_examples()
        files = finetuned_files(self.files(), support, self.settings.scores, progress)
        return LinearLearner.open(files, dtype=self.dtype) if files else None

    def fit(
        self, support: SupportSet, options: LearnOptions | None = None, known: SentenceTagger | None = None
    ) -> LinearTagger:
        """Learn the labels of a support set and return a tagger.

        Sentences that ``known`` has learned already are not encoded again. The result is the same.
        """
        options = options or DEFAULT
        shown = {span.label for sentence in support.sentences for span in sentence.spans}
        named = zip(support.labels, support.names, strict=True)
        prior = self.encoder.encode_names([name_to_encode(label, name, label in shown) for label, name in named])
        known_rows, start = _known_rows(known, support, prior) if isinstance(known, LinearTagger) else ({}, None)
        fresh = list(dict.fromkeys(s for number, s in enumerate(support.sentences) if number not in known_rows))
        widths = tuple(range(1, self.settings.longest + 1))
        bounds = [candidates(len(sentence.words), widths) for sentence in fresh]
        answers_of = ([(span.start, span.end) for span in (*s.spans, *s.rejected)] for s in fresh)
        bounds = [
            with_spans(narrow, answers) if any(end - start > widths[-1] for start, end in answers) else narrow
            for narrow, answers in zip(bounds, answers_of, strict=True)
        ]
        most = max(2, MOST_ROWS // max(1, len(support.sentences)))  # further sentences leave less room, never more
        batch_pieces = PIECES_PER_WORD * options.max_batch_words
        rows: dict[Sentence, Rows] = {}
        for number, spans in self.encoder.encode([sentence.words for sentence in fresh], bounds, batch_pieces):
            marked, rejected, covered = annotation(fresh[number], spans.bounds, support.labels)
            rows[fresh[number]] = choose_rows(
                spans.vectors, marked, prior, rejected=rejected, covered=covered, most=most
            )
        all_rows = [known_rows.get(number) or rows[sentence] for number, sentence in enumerate(support.sentences)]
        head = fit(all_rows, prior, self.settings.head, start=start)
        lengths = {span.end - span.start for sentence in support.sentences for span in sentence.spans}
        if lengths and max(lengths) > widths[-1]:
            widths = candidate_widths(lengths, self.settings.longest)
        return LinearTagger(self, support.labels, support.sentences, head, self.settings.scores, options, widths)


def _known_rows(known: LinearTagger, support: SupportSet, prior: Prior) -> tuple[dict[int, Rows], Array]:
    """Return the rows of the sentences that a tagger has learned, by number, and its solution as a start.

    The rows of a sentence depend on the labels that were looked for in it, and on their names only. So they stay the
    same if there are further labels that were not looked for.
    """
    before, head = known.labels, known.head
    start = np.concatenate([np.zeros_like(prior.weights), np.ones_like(prior.bias)[:, None], prior.bias[:, None]], 1)
    start = start.astype(np.float64)
    column = {label: at for at, label in enumerate(support.labels)}
    shared = [(at, column[label]) for at, label in enumerate(before) if label in column]
    old, new = [at for at, _ in shared], [at for _, at in shared]
    start[new] = head.thetas[old]
    same_name = {
        before[at]
        for at, now in shared
        if head.prior.named[at] == prior.named[now] and np.array_equal(head.prior.weights[at], prior.weights[now])
    }
    rows_of: dict[int, Rows] = {}
    # A loaded head has no rows. Of the other heads, sentence and rows stand at the same place.
    for number, (first, second, rows) in enumerate(
        zip(known.sentences, support.sentences, head.sentences, strict=False)
    ):
        then = before if first.annotated is None else first.annotated
        now = support.labels if second.annotated is None else second.annotated
        is_same = first.words == second.words and first.spans == second.spans and first.rejected == second.rejected
        if not is_same or (then is not now and set(then) != set(now)) or not same_name.issuperset(then):
            continue
        if before != support.labels:
            marked = np.zeros((len(rows.marked), len(column)), np.bool_)
            covered = np.zeros(len(column), np.bool_)
            marked[:, new], covered[new] = rows.marked[:, old], rows.covered[old]
            rows = replace(rows, marked=marked, covered=covered)
        rows_of[number] = rows
    return rows_of, start


def annotation(sentence: Sentence, bounds: Bounds, labels: Sequence[str]) -> tuple[Bools, list[int], Bools]:
    """Return which labels each candidate has, the rejected candidates, and which labels were looked for.

    ``bounds`` are by start, then end, and hold all spans of the sentence.
    """
    number = {label: at for at, label in enumerate(labels)}
    base = int(bounds.max(initial=0)) + 1
    keys = bounds @ np.array([base, 1])  # ascending, one per candidate
    marked = np.zeros((len(bounds), len(labels)), np.bool_)
    for span in sentence.spans:
        marked[np.searchsorted(keys, span.start * base + span.end), number[span.label]] = True
    rejected = sorted({int(np.searchsorted(keys, span.start * base + span.end)) for span in sentence.rejected})
    looked_for = labels if sentence.annotated is None else sentence.annotated
    return marked, rejected, np.array([label in looked_for for label in labels])


class _Kept:
    """Files that are kept in memory."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self) -> Files:
        return self._files


def _reopened(files: Callable[[], Files], digest: str, dtype: str) -> LinearLearner:
    """Rebuild a learner from its pickle."""
    if (digest, dtype) in _OPEN:
        return _OPEN[digest, dtype]
    content = files()
    if digest_of(content) != digest:
        raise CheckpointError("the package holds another model than the one that was pickled; learn again")
    learner = LinearLearner.open(content, files, digest=digest, dtype=dtype)
    _OPEN[digest, dtype] = learner
    return learner


_OPEN: WeakValueDictionary[tuple[str, str], LinearLearner] = WeakValueDictionary()
"""Learners that were rebuilt from pickles and are in use: one model serves all taggers of a process."""
