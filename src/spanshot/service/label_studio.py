"""An ML backend for Label Studio: one for each tagger, at ``/label-studio/NAME``.

Label Studio asks for predictions; a webhook sends annotations, and the tagger learns each of them.
"""

from __future__ import annotations

import hashlib
from functools import partial

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.integrations.label_studio_backend import LabelConfig, example_of, prediction
from spanshot.json_text import Fields, parse_json, to_json
from spanshot.service import changes
from spanshot.service.core import Service
from spanshot.service.errors import ServiceError
from spanshot.service.routes import ERRORS, NOT_FOUND, TheService
from spanshot.service.schemas import NamePath, NewTagger, Text
from spanshot.tagger import Tagger
from spanshot.types import Sentence

LEARNED = {"ANNOTATION_CREATED", "ANNOTATION_UPDATED"}
FORGOTTEN = {"ANNOTATION_DELETED", "ANNOTATIONS_DELETED"}
router = APIRouter(prefix="/label-studio/{name}", tags=["Label Studio"], responses={**ERRORS, **NOT_FOUND})


class Strict(BaseModel):
    """A body whose values are not converted; Label Studio may add fields."""

    model_config = ConfigDict(strict=True)


class Task(Strict):
    """A task of Label Studio."""

    data: dict[Text, JsonValue]


class Annotation(Strict):
    """An annotation; of a deleted one, only the id is there."""

    id: int | None = None
    result: list[dict[Text, JsonValue]] = []
    was_cancelled: bool = False


class Project(Strict):
    """A project of Label Studio."""

    label_config: Text = ""


class Setup(Strict):
    """A project that is being connected."""

    label_config: Text = Field(alias="schema", default="")


class PredictionRequest(Strict):
    """Tasks to be tagged."""

    tasks: list[Task]
    label_config: Text


class Event(Strict):
    """An event of a webhook."""

    action: Text
    project: Project = Project()
    task: Task | None = None
    annotation: Annotation | None = None
    annotations: list[Annotation] = []


class SetupAnswer(BaseModel):
    """The version of the tagger."""

    model_version: str


class Predictions(BaseModel):
    """A prediction for each task."""

    results: list[dict[str, JsonValue]]


class EventAnswer(BaseModel):
    """What became of an event: learned, forgotten, unchanged or ignored."""

    status: str
    model_version: str | None = None


class HealthAnswer(BaseModel):
    """The state of the backend."""

    status: str


@router.get("/health")
async def health(name: NamePath) -> HealthAnswer:
    """Answer that the backend is there."""
    del name
    return HealthAnswer(status="UP")


@router.post("/setup")
async def setup(service: TheService, name: NamePath, body: Setup) -> SetupAnswer:
    """Connect a project: a tagger that does not exist yet is made from the names of its labels."""
    version = await _ensure(service, name, LabelConfig.parse(body.label_config))
    return SetupAnswer(model_version=_version(name, version))


@router.post("/predict")
async def predict(service: TheService, name: NamePath, body: PredictionRequest) -> Predictions:
    """Tag tasks. A text beyond the limits gets an empty prediction."""
    config = LabelConfig.parse(body.label_config)
    await _ensure(service, name, config)
    texts = [config.text_of(task.data) for task in body.tasks]
    allowed = [text if len(text) <= service.limits.text else "" for text in texts]
    stored, results = await service.tag(name, allowed)
    version = _version(name, stored.version)
    return Predictions(results=[dict(prediction(entities, config, version)) for entities in results])


@router.post("/webhook")
async def webhook(service: TheService, name: NamePath, body: Event) -> EventAnswer:
    """Learn from an annotation that was made or changed; forget one that was deleted."""
    if body.action in FORGOTTEN:
        gone = (annotation for annotation in (body.annotation, *body.annotations) if annotation is not None)
        return await _forget(service, name, [str(annotation.id) for annotation in gone])
    if body.action not in LEARNED or body.task is None or body.annotation is None:
        return EventAnswer(status="ignored")
    config = LabelConfig.parse(body.project.label_config)
    example = example_of(body.task.data, body.annotation.model_dump(), config)
    if example is None:
        return await _forget(service, name, [str(body.annotation.id)])
    if len(example.text) > service.limits.example:
        return EventAnswer(status="ignored")
    version = await _ensure(service, name, config)
    learn = partial(_with_example, service, example, _Memory(service, name), str(body.annotation.id))
    return await _change(service, name, learn, "learned", version)


async def _ensure(service: Service, name: str, config: LabelConfig) -> int:
    """Make a tagger from the names of labels, unless it exists; return its version."""
    if versions := service.store.versions(name):
        return versions[-1]
    request = NewTagger(name=name, labels=dict(config.labels))
    try:
        return (await service.change(lambda: changes.create(service, request))).stored.version
    except ServiceError as problem:
        if problem.status != 409:
            raise
    return service.store.find(name).version


async def _forget(service: Service, name: str, annotations: list[str]) -> EventAnswer:
    version = service.store.find(name).version
    forget = partial(_without_annotations, _Memory(service, name), annotations)
    return await _change(service, name, forget, "forgotten", version)


class _UnchangedError(Exception):
    """The tagger has learned it already."""


async def _change(service: Service, name: str, change: partial[Tagger], status: str, version: int) -> EventAnswer:
    try:
        changed = await service.change(lambda: changes.changed(service, name, change))
    except _UnchangedError:
        return EventAnswer(status="unchanged", model_version=_version(name, version))
    return EventAnswer(status=status, model_version=_version(name, changed.stored.version))


def _with_example(service: Service, example: Sentence, memory: _Memory, annotation: str, tagger: Tagger) -> Tagger:
    """Add an example, in place of an earlier one with the same text."""
    digest = _digest(example.text)
    texts = memory.texts()
    replaced = {digest, texts.get(annotation, digest)}
    others = [sentence for sentence in tagger.support.sentences if _digest(sentence.text) not in replaced]
    is_known = len(others) == len(tagger.support.sentences) - 1 and example in tagger.support.sentences
    memory.write({**texts, annotation: digest})
    if is_known:
        raise _UnchangedError
    changed = changes.with_sentences(tagger, others) if len(others) < len(tagger.support.sentences) else tagger
    larger = changed.add([example])
    changes.check_support(larger.support, service.limits)
    return larger


def _without_annotations(memory: _Memory, annotations: list[str], tagger: Tagger) -> Tagger:
    """Remove the examples of annotations."""
    texts = memory.texts()
    removed = {texts.pop(annotation) for annotation in annotations if annotation in texts}
    others = [sentence for sentence in tagger.support.sentences if _digest(sentence.text) not in removed]
    if len(others) == len(tagger.support.sentences):
        raise _UnchangedError
    changed = changes.with_sentences(tagger, others)
    memory.write(texts)
    return changed


class _Memory:
    """Which annotation led to which example, on disk: an event that deletes an annotation has its id only."""

    def __init__(self, service: Service, name: str) -> None:
        self._file = service.settings.folder / "label-studio" / f"t-{name}.json"

    def texts(self) -> dict[str, str]:
        """Return the digest of each annotation's text."""
        try:
            record = Fields.of(parse_json(self._file.read_text(encoding="utf-8"))).record
        except (OSError, DataError):
            return {}
        return {annotation: str(digest) for annotation, digest in record.items()}

    def write(self, texts: dict[str, str]) -> None:
        """Replace the file."""
        self._file.parent.mkdir(exist_ok=True)
        write_text(self._file, [to_json(texts)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _version(name: str, version: int) -> str:
    return f"{name}-{version}"
