"""The one schema of entities in tables: a list of structs, in the types of each library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spanshot.formats.json_values import JsonObject
from spanshot.optional import need
from spanshot.types import Entity

if TYPE_CHECKING:
    import datasets
    import polars
    import pyarrow

ENTITY = {"start": "int64", "end": "int64", "label": "string", "text": "string", "score": "float64"}
"""The fields of an entity, by the names of their Arrow types. Offsets count characters; ``end`` is exclusive."""
REASON = {"text": "string", "example": "string", "weight": "float64"}
"""The fields of an example that led to an entity, in the optional field ``because``."""


def to_records(entities: Sequence[Entity], *, because: bool = False) -> list[JsonObject]:
    """Return entities as records with the fields of the schema.

    >>> to_records([Entity("Oslo", "city", 3, 7, 0.5)])
    [{'start': 3, 'end': 7, 'label': 'city', 'text': 'Oslo', 'score': 0.5}]
    """
    records: list[JsonObject] = []
    for entity in entities:
        record: JsonObject = {name: getattr(entity, name) for name in ENTITY}
        if because:
            record["because"] = [{name: getattr(reason, name) for name in REASON} for reason in entity.because]
        records.append(record)
    return records


def arrow_type(*, because: bool = False) -> pyarrow.DataType:
    """Return the type of the entities column for Arrow, Parquet and pandas."""
    pa = need("pyarrow", "tables")
    fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in ENTITY.items()]
    if because:
        reasons = pa.struct([pa.field(name, pa.type_for_alias(kind)) for name, kind in REASON.items()])
        fields.append(pa.field("because", pa.list_(reasons)))
    return pa.list_(pa.struct(fields))


def polars_type(*, because: bool = False) -> polars.DataType:
    """Return the type of the entities column for polars."""
    pl = need("polars", "tables")
    types = {"int64": pl.Int64, "string": pl.String, "float64": pl.Float64}
    fields = {name: types[kind] for name, kind in ENTITY.items()}
    if because:
        fields["because"] = pl.List(pl.Struct({name: types[kind] for name, kind in REASON.items()}))
    return pl.List(pl.Struct(fields))


def datasets_type(*, because: bool = False) -> datasets.Features:
    """Return the type of the entities column for Hugging Face datasets."""
    package = need("datasets", "tables")
    fields = {name: package.Value(kind) for name, kind in ENTITY.items()}
    if because:
        fields["because"] = package.List({name: package.Value(kind) for name, kind in REASON.items()})
    return package.List(fields)


def with_feature(metadata: dict[bytes, bytes] | None, name: str, *, because: bool) -> dict[bytes, bytes] | None:
    """Return the metadata of a table with the entities among the features that Hugging Face datasets keep there."""
    if not metadata or b"huggingface" not in metadata:
        return metadata
    try:
        info = json.loads(metadata[b"huggingface"])
        features = info["info"]["features"]
        entity: JsonObject = {field: {"dtype": kind, "_type": "Value"} for field, kind in ENTITY.items()}
        if because:
            entity["because"] = [{field: {"dtype": kind, "_type": "Value"} for field, kind in REASON.items()}]
        features[name] = [entity]
    except (ValueError, KeyError, TypeError):
        return metadata
    return {**metadata, b"huggingface": json.dumps(info).encode()}
