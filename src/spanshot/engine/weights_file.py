"""Read a weights file in the safetensors format without copying it."""

from __future__ import annotations

import numpy as np

from spanshot.engine.graph_file import Tensors
from spanshot.engine.layout import WEIGHTS
from spanshot.errors import CheckpointError, DataError
from spanshot.json_text import Fields, parse_json

_KINDS: dict[str, np.dtype[np.floating]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
_EXPONENT = 0x7C00  # bits of a half-precision number; all are set for infinity and NaN
_METADATA = "__metadata__"
_MOST_HEADER = 10_000_000


def read_weights(content: bytes) -> Tensors:
    """Return the tensors of a weights file as views of its content. Every problem is a `CheckpointError`.

    A file starts with the size of a JSON header, in 8 bytes. The header gives type, shape and place of each tensor.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        if not 2 <= size <= min(_MOST_HEADER, len(content) - 8):
            raise DataError("the header is missing")
        header = Fields.of(parse_json(content[8 : 8 + size].decode("utf-8")))
        weights = {name: _tensor(content, 8 + size, header.object(name)) for name in header.record if name != _METADATA}
    except (DataError, UnicodeDecodeError, ValueError, OverflowError) as problem:
        raise CheckpointError(f"{WEIGHTS}: damaged: {str(problem)[:200]}") from None
    for name, weight in weights.items():
        if not _is_finite(weight):
            raise CheckpointError(f"{WEIGHTS}: {name[:200]!a} has values that are not finite numbers")
    return weights


def _tensor(content: bytes, base: int, fields: Fields) -> np.ndarray[tuple[int, ...], np.dtype[np.floating]]:
    kind = _KINDS.get(fields.text("dtype"))
    shape, place = ([_whole(number) for number in fields.list(name)] for name in ("shape", "data_offsets"))
    if kind is None or len(place) != 2 or len(shape) > 8:
        raise DataError("a tensor of another type, or without a place")
    count = 1
    for number in shape:
        count *= number
    start, end = place
    if not start <= end <= len(content) - base or end - start != count * kind.itemsize:
        raise DataError("a tensor is longer or shorter than its shape says")
    return np.frombuffer(content, kind, count, base + start).reshape(shape)


def _is_finite(weight: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> bool:
    """Return whether all values are finite. For half precision, the bits are tested, which is several times as fast."""
    if weight.dtype == np.float16:
        return int((weight.view(np.uint16) & _EXPONENT).max(initial=0)) < _EXPONENT
    return bool(np.isfinite(weight).all())


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**40:
        raise DataError("shapes and places must be whole numbers")
    return value
