"""A spaCy component that tags with a few examples: ``nlp.add_pipe("spanshot", config={"examples": "examples.txt"})``.

spaCy finds it by its entry point, so nothing needs to be imported. Entities become ``doc.ents`` (of nested ones, the
longest) and ``doc.spans["spanshot"]`` (all). Spans have ``span._.score`` and ``span._.because``, and a Doc has
``doc._.spanshot``: its entities as records, exact to the character.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from spanshot.errors import ConfigError, EpisodeError
from spanshot.formats.char_spans import MarkedText, sentences_of
from spanshot.formats.docbin import marked_doc
from spanshot.formats.json_values import JsonObject, Place
from spanshot.formats.schema import to_records
from spanshot.optional import missing
from spanshot.types import Entity, Sentence

if TYPE_CHECKING:
    from spacy.training import Example

    from spanshot.tagger import Tagger

try:
    import srsly
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc, Span
    from spacy.util import filter_spans
except ModuleNotFoundError:
    raise missing("spacy", "spacy") from None

SPANS_KEY = "spanshot"
_TAGGER = "tagger"


@Language.factory(
    "spanshot",
    assigns=["doc.ents", "doc.spans", "doc._.spanshot", "span._.score", "span._.because"],
    default_config={
        "examples": None,
        "model": None,
        "nested": False,
        "threshold": None,
        "set_ents": True,
        "spans_key": SPANS_KEY,
        "batch_size": 32,
    },
)
def make_component(
    nlp: Language,
    name: str,
    examples: str | list[str] | None,
    model: str | None,
    nested: bool,
    threshold: float | dict[str, float] | None,
    set_ents: bool,
    spans_key: str,
    batch_size: int,
) -> SpanshotPipe:
    """Create the component. ``examples`` is a file or a list of marked sentences; ``model`` a folder."""
    del nlp
    return SpanshotPipe(
        name,
        examples=examples,
        model=model,
        nested=nested,
        threshold=threshold,
        set_ents=set_ents,
        spans_key=spans_key,
        batch_size=batch_size,
    )


class SpanshotPipe(Pipe):
    """Tags Docs. The examples are learned when the first Doc arrives, unless a tagger was loaded before."""

    def __init__(
        self,
        name: str = "spanshot",
        *,
        tagger: Tagger | None = None,
        examples: str | list[str] | None = None,
        model: str | None = None,
        nested: bool = False,
        threshold: float | dict[str, float] | None = None,
        set_ents: bool = True,
        spans_key: str = SPANS_KEY,
        batch_size: int = 32,
    ) -> None:
        self.name = name
        self.examples = examples
        self.model = model
        self.nested = nested
        self.threshold = threshold
        self.set_ents = set_ents
        self.spans_key = spans_key
        self.batch_size = batch_size
        self._tagger = tagger
        _add_extensions()

    @property
    def tagger(self) -> Tagger:
        """The tagger; the examples are learned when it is first used."""
        if self._tagger is None:
            if self.examples is None:
                raise ConfigError(
                    f"the component {self.name!r} has no examples; set them in its config, or call nlp.initialize with "
                    "annotated Docs"
                )
            self._learn(self.examples)
        assert self._tagger is not None
        return self._tagger

    def _learn(self, examples: str | list[str] | list[Sentence]) -> None:
        from spanshot.model import learn, load_model

        model = load_model(self.model) if self.model else None
        self._tagger = learn(examples, nested=self.nested, threshold=self.threshold, model=model)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the entities; empty before anything is learned."""
        return self._tagger.labels if self._tagger else ()

    def __call__(self, doc: Doc) -> Doc:
        """Tag a Doc."""
        error_handler = self.get_error_handler()
        try:
            self.annotate(doc, self.tagger(doc.text))
        except Exception as error:
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Tag a stream of Docs in batches; a batch is at least as large as the component's own ``batch_size``."""
        error_handler = self.get_error_handler()
        size = max(batch_size or 0, self.batch_size)
        stream = iter(stream)
        while docs := list(islice(stream, size)):
            try:
                results = list(self.tagger.pipe([doc.text for doc in docs], self.batch_size))
            except Exception as error:
                error_handler(self.name, self, docs, error)
                continue
            for doc, entities in zip(docs, results, strict=True):
                self.annotate(doc, entities)
                yield doc

    def annotate(self, doc: Doc, entities: list[Entity]) -> None:
        """Set the entities of a Doc. An entity that cuts a token is extended to the whole token."""
        doc._.spanshot = to_records(entities, because=True)
        spans = []
        for entity, record in zip(entities, doc._.spanshot, strict=True):
            span = doc.char_span(entity.start, entity.end, label=entity.label, alignment_mode="expand")
            if span is not None:
                spans.append(span)
                record["tokens"] = [span.start, span.end]
        doc.spans[self.spans_key] = spans
        if self.set_ents:
            entity_tokens = {token.i for span in doc.ents for token in span}
            free = [span for span in spans if not any(token.i in entity_tokens for token in span)]
            doc.set_ents(filter_spans(free), default="unmodified")

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        examples: str | list[str] | None = None,
    ) -> None:
        """Learn from ``examples`` (a file or marked sentences), or from the entities and spans of annotated Docs."""
        del nlp
        if examples is not None:
            self._learn(examples)
            return
        sentences: list[Sentence] = []
        for number, example in enumerate(get_examples(), start=1):
            marked = marked_doc(example.reference, Place(f"Doc {number}"))
            if isinstance(marked, MarkedText):
                sentences += sentences_of(marked)[0]
        if any(sentence.spans for sentence in sentences):
            self._learn(sentences)
        elif self.examples is None:
            raise EpisodeError("the Docs have no entities and no spans to learn from")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the tagger in a folder."""
        if "tagger" not in exclude:
            Path(path).mkdir(parents=True, exist_ok=True)
            self.tagger.save(Path(path) / _TAGGER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> SpanshotPipe:
        """Load the tagger from a folder."""
        from spanshot.model import load

        if "tagger" not in exclude:
            self._tagger = load(Path(path) / _TAGGER)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the saved tagger as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder, exclude=exclude)
            files = {
                file.relative_to(folder).as_posix(): file.read_bytes()
                for file in sorted(Path(folder).rglob("*"))
                if file.is_file()
            }
        packed: bytes = srsly.msgpack_dumps(files)
        return packed

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> SpanshotPipe:
        """Load a tagger from bytes."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in srsly.msgpack_loads(content).items():
                file = (Path(folder) / name).resolve()
                if not file.is_relative_to(Path(folder).resolve()):
                    raise ConfigError(f"{name!r} is not the name of a file of a tagger")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            return self.from_disk(folder, exclude=exclude)


def _add_extensions() -> None:
    if not Doc.has_extension("spanshot"):
        Doc.set_extension("spanshot", default=None)
    for name in ("score", "because"):
        if not Span.has_extension(name):
            Span.set_extension(name, getter=_Field(name))


class _Field:
    """Looks up a field of the entity that a span was made from. Values set on spans would not tell labels apart."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, span: Span) -> object:
        records: list[JsonObject] = span.doc._.spanshot or []
        for record in records:
            tokens = record.get("tokens")  # a list; a tuple once the Doc has been saved
            is_here = isinstance(tokens, list | tuple) and (*tokens,) == (span.start, span.end)
            if is_here and record["label"] == span.label_:
                return record[self.name]
        return None
