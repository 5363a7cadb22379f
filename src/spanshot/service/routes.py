"""The routes that create, list, change and delete taggers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from spanshot.formats.json_values import JsonObject
from spanshot.formats.jsonl import record_of
from spanshot.service import changes
from spanshot.service.core import Changed, Service
from spanshot.service.errors import not_found
from spanshot.service.schemas import (
    ChangedTagger,
    ErrorOut,
    ExampleList,
    ExampleOut,
    MoreExamples,
    NamePath,
    NewTagger,
    Restore,
    TaggerList,
    TaggerOut,
    VersionList,
    VersionNumber,
)
from spanshot.service.store import NAME, StoredTagger
from spanshot.types import LearnOptions, Sentence, SupportSet

ERRORS: dict[int | str, dict[str, object]] = {
    400: {"model": ErrorOut, "description": "The body is not JSON."},
    401: {"model": ErrorOut, "description": "The API key is missing or wrong."},
    408: {"model": ErrorOut, "description": "The body did not arrive in time."},
    413: {"model": ErrorOut, "description": "The body is too large."},
    422: {"model": ErrorOut, "description": "The request is not valid, or beyond a limit."},
    429: {
        "model": ErrorOut,
        "description": "The service is busy. Try again after the seconds in `Retry-After`.",
        "headers": {"Retry-After": {"schema": {"type": "integer"}}},
    },
    503: {"model": ErrorOut, "description": "It took too long, or the service is shutting down."},
    507: {"model": ErrorOut, "description": "There is no room for the tagger."},
}
NOT_FOUND: dict[int | str, dict[str, object]] = {404: {"model": ErrorOut, "description": "It does not exist."}}
EXISTS: dict[int | str, dict[str, object]] = {409: {"model": ErrorOut, "description": "The name is taken."}}


def service_of(request: Request) -> Service:
    """Return the service that a request belongs to."""
    service: Service = request.app.state.service
    return service


TheService = Annotated[Service, Depends(service_of)]
VersionQuery = Annotated[VersionNumber | None, Query(description="Another version than the newest.")]
router = APIRouter(prefix="/v1/taggers", tags=["taggers"], responses=ERRORS)


@router.post("", status_code=201, responses=EXISTS)
async def create_tagger(service: TheService, body: NewTagger) -> ChangedTagger:
    """Learn a tagger from examples, or from the names of labels."""
    return _changed(await service.change(lambda: changes.create(service, body)))


@router.get("")
async def list_taggers(
    service: TheService,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(pattern=NAME, description="Start after this name.")] = None,
) -> TaggerList:
    """List taggers by name."""

    def collect() -> TaggerList:
        names = service.store.names()
        start = bisect_right(names, after) if after is not None else 0
        page = names[start : start + limit]
        taggers = [out for name in page if (out := _listed(service, name)) is not None]
        return TaggerList(taggers=taggers, next=page[-1] if start + limit < len(names) else None)

    return await service.in_background(collect)


@router.get("/{name}", responses=NOT_FOUND)
async def get_tagger(service: TheService, name: NamePath, version: VersionQuery = None) -> TaggerOut:
    """Show a tagger."""

    def collect() -> TaggerOut:
        stored = service.store.find(name, version)
        content = service.store.content(stored)
        return _out(stored, content.support, content.options)

    return await service.in_background(collect)


@router.delete("/{name}", status_code=204, response_class=Response, responses=NOT_FOUND)
async def delete_tagger(service: TheService, name: NamePath) -> None:
    """Delete a tagger with all its versions."""
    await service.in_background(lambda: service.store.delete(name))


@router.get("/{name}/versions", responses=NOT_FOUND)
async def list_versions(service: TheService, name: NamePath) -> VersionList:
    """List the versions of a tagger that are kept."""
    versions = service.store.versions(name)
    if not versions:
        raise not_found("tagger", name)
    return VersionList(versions=versions)


@router.post("/{name}/restore", responses=NOT_FOUND)
async def restore_version(service: TheService, name: NamePath, body: Restore) -> ChangedTagger:
    """Return to an earlier version: it is saved as the newest one."""
    return _changed(await service.change(lambda: changes.restore(service, name, body.version)))


@router.get("/{name}/examples", responses=NOT_FOUND)
async def list_examples(service: TheService, name: NamePath, version: VersionQuery = None) -> ExampleList:
    """List the examples of a tagger."""

    def collect() -> ExampleList:
        stored = service.store.find(name, version)
        sentences = service.store.content(stored).support.sentences
        return ExampleList(version=stored.version, examples=[_example(sentence) for sentence in sentences])

    return await service.in_background(collect)


@router.post("/{name}/examples", responses=NOT_FOUND)
async def add_examples(service: TheService, name: NamePath, body: MoreExamples) -> ChangedTagger:
    """Add examples and labels. The result is a new version."""
    return _changed(await service.change(lambda: changes.add(service, name, body)))


@router.delete("/{name}/examples/{example}", responses=NOT_FOUND)
async def remove_example(
    service: TheService,
    name: NamePath,
    example: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The id of an example.")],
) -> ChangedTagger:
    """Remove an example. The result is a new version."""
    return _changed(await service.change(lambda: changes.remove_example(service, name, example)))


@router.delete("/{name}/labels/{label}", responses=NOT_FOUND)
async def remove_label(service: TheService, name: NamePath, label: str) -> ChangedTagger:
    """Remove a label; its examples stay, without their marks. The result is a new version."""
    return _changed(await service.change(lambda: changes.remove_label(service, name, label)))


def _listed(service: Service, name: str) -> TaggerOut | None:
    """Return a tagger, or None if it was deleted a moment ago."""
    try:
        stored = service.store.find(name)
        content = service.store.content(stored)
    except Exception:
        return None
    return _out(stored, content.support, content.options)


def _changed(changed: Changed) -> ChangedTagger:
    out = _out(changed.stored, changed.tagger.support, changed.tagger.options)
    return ChangedTagger(**vars(out), warnings=list(changed.warnings))


def _out(stored: StoredTagger, support: SupportSet, options: LearnOptions) -> TaggerOut:
    threshold = options.threshold
    return TaggerOut(
        name=stored.name,
        version=stored.version,
        created=datetime.fromtimestamp(stored.created, UTC).isoformat(timespec="milliseconds"),
        labels=support.label_names,
        examples=len(support.sentences),
        nested=options.nested,
        threshold=dict(threshold) if isinstance(threshold, Mapping) else threshold,
        precision=options.precision,
    )


def _example(sentence: Sentence) -> ExampleOut:
    record: JsonObject = record_of(sentence)
    return ExampleOut.model_validate({"rejected": [], "annotated": None, **record, "id": changes.example_id(sentence)})
