"""Read graphs without trusting them: which operations they use, and which tensors of the weights file they need.

A graph is an ONNX file without weights. It may use the operations of `OPERATIONS` only, none of which runs code,
reads files or repeats a part of the graph. Its large initializers are named after tensors of the weights file, with
suffixes that say how they are made from them:

``:T``       transposed
``:row0``    the first row
``:row``     as a matrix of one row
``:half``    in half precision; all others are in single precision
``:int8``, ``:scale``    quantised to signed integers, with a scale per column
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.errors import ConfigError

SMALL = 64
"""Initializers with at most this many elements are part of the graph: shapes, axes and the like."""
MOST_NODES = 4000
LARGEST_INTEGER = 64
"""Of quantised weights."""
OPERATIONS = frozenset(
    {
        *("Add", "Sub", "Mul", "Div", "MatMul", "Gemm", "Sqrt", "Erf", "Gelu", "Tanh", "Relu", "Softmax"),
        *("LayerNormalization", "ReduceL2", "ReduceMean", "ReduceSum", "Pow", "Clip", "Max", "Min", "Where", "Not"),
        *("Gather", "GatherND", "Slice", "Concat", "Split", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Expand"),
        *("Shape", "Cast", "Constant", "Identity", "Equal", "Less", "Greater", "And", "Neg", "Reciprocal"),
        "DynamicQuantizeMatMul",
    }
)
_DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})
_FLOAT, _INT8, _FLOAT16 = 1, 3, 10  # TensorProto.DataType
_TYPES: dict[int, np.dtype[np.generic]] = {
    _FLOAT: np.dtype(np.float32),
    _INT8: np.dtype(np.int8),
    _FLOAT16: np.dtype(np.float16),
}
_EXTERNAL = 1

Tensors = Mapping[str, npt.NDArray[np.floating]]


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A checked graph."""

    content: bytes
    tensors: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]]
    """Type and shape of each initializer that the weights file gives."""

    def values(self, weights: Tensors) -> dict[str, npt.NDArray[np.generic]]:
        """Return the initializers, made from the tensors of the weights file."""
        values = {}
        for name, (kind, shape) in self.tensors.items():
            try:
                value = source(name, weights)
            except (KeyError, ValueError, IndexError):
                raise ConfigError(f"the weights lack {name[:200]!a}, which the graph needs") from None
            if value.dtype != kind or value.shape != shape:
                raise ConfigError(f"{name[:200]!a} has another type or shape than the graph needs")
            values[name] = value
        return values


def source(name: str, weights: Tensors) -> npt.NDArray[np.generic]:
    """Return the initializer of this name, made from the tensors of the weights file.

    >>> weights = {"w": np.array([[1, 2], [3, 4]], np.float16)}
    >>> source("w:T", weights).tolist(), source("w:row0", weights).dtype
    ([[1.0, 3.0], [2.0, 4.0]], dtype('float32'))
    """
    tensor, *steps = name.split(":")
    if steps == ["half"]:
        return np.array(weights[tensor], np.float16)  # a copy, so that the content of the file can be freed
    value: npt.NDArray[np.generic] = weights[tensor].astype(np.float32)
    for step in steps:
        if step == "T" and value.ndim == 2:
            value = np.ascontiguousarray(value.T)
        elif step == "row0" and value.ndim == 2:
            value = np.ascontiguousarray(value[0])
        elif step == "row" and value.ndim == 1:
            value = value[None]
        elif step in ("int8", "scale") and value.ndim == 2:
            value = quantise(np.asarray(value, np.float32))[("int8", "scale").index(step)]
        else:
            raise ValueError(name)
    return value


def quantise(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return a matrix as integers from -64 to 64, and the scale of each column.

    The range is reduced because processors without VNNI instructions add pairs of products in 16 bits: two products
    of 255 and 64 fit, products of 255 and 127 would saturate.

    >>> values, scale = quantise(np.array([[0.32], [-0.64]], np.float32))
    >>> values.tolist(), f"{scale[0]:.4f}"
    ([[32], [-64]], '0.0100')
    """
    scale = np.maximum(np.abs(matrix).max(0) / LARGEST_INTEGER, np.float32(1e-12)).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


def read_graph(content: bytes) -> GraphFile:
    """Check a graph and return the initializers that it needs. Every problem is a `ConfigError`."""
    try:
        return GraphFile(content, dict(_initializers(content)))
    except (IndexError, UnicodeDecodeError, ValueError, OverflowError, MemoryError):
        raise ConfigError("not a graph that spanshot has exported: damaged") from None


def _initializers(content: bytes) -> Iterator[tuple[str, tuple[np.dtype[np.generic], tuple[int, ...]]]]:
    """Yield name, type and shape of the large initializers; raise `ConfigError` for everything that is not allowed."""
    graphs = []
    for field, value in _fields(content):
        if field == 7 and isinstance(value, bytes):
            graphs.append(value)
        elif field in (20, 25):  # training information, functions
            raise _refused("functions")
    if len(graphs) != 1:
        raise _refused("no graph, or several")
    nodes = 0
    for field, value in _fields(graphs[0]):
        if field == 1:
            nodes += 1
            _check_node(_bytes(value))
            if nodes > MOST_NODES:
                raise _refused(f"more than {MOST_NODES} operations")
        elif field == 5:
            outside = _initializer(_bytes(value))
            if outside:
                yield outside
        elif field in (14, 15):  # quantisation annotations, sparse initializers
            raise _refused("a part that is not supported")


def _check_node(node: bytes) -> None:
    for field, value in _fields(node):
        if field == 4 and (operation := _bytes(value).decode()) not in OPERATIONS:
            raise _refused(f"the operation {operation[:40]!a}")
        if field == 7 and (domain := _bytes(value).decode()) not in _DOMAINS:
            raise _refused(f"operations of {domain[:40]!a}")
        if field == 5:
            for part, content in _fields(_bytes(value)):
                if part in (6, 11, 10, 22, 23):  # graphs, lists of tensors, sparse tensors
                    raise _refused("an operation with a graph of its own")
                if part == 5 and _initializer(_bytes(content)):
                    raise _refused("a large constant")


def _initializer(tensor: bytes) -> tuple[str, tuple[np.dtype[np.generic], tuple[int, ...]]] | None:
    """Return name, type and shape of an initializer outside the graph; None if it is in the graph and small."""
    name, kind, place, in_a_file, shape = "", 0, 0, False, list[int]()
    for field, value in _fields(tensor):
        if field == 1:
            shape += [value] if isinstance(value, int) else _numbers(value)
        elif field == 2:
            kind = _number(value)
        elif field == 8:
            name = _bytes(value).decode()
        elif field == 13:
            in_a_file = True
        elif field == 14:
            place = _number(value)
    if place != _EXTERNAL:
        if in_a_file:
            raise _refused("a constant in another file")
        if len(tensor) > 32 * SMALL or math.prod(shape) > SMALL:
            raise _refused("weights of its own")
        return None
    if kind not in _TYPES or not name:
        raise _refused("weights of another type")
    return name, (_TYPES[kind], tuple(shape))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key >= 1 << 32:  # other parsers keep the lower 32 bits and so see another field
            raise ValueError(key)
        kind = key & 7
        if kind == 0:
            number, at = _varint(message, at)
            yield key >> 3, number
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(kind)
        if at + size > len(message):
            raise IndexError(at)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError(value)


def _numbers(packed: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(packed):
        number, at = _varint(packed, at)
        numbers.append(number)
    return numbers


def _number(value: int | bytes) -> int:
    if not isinstance(value, int) or value >= 1 << 31:  # other parsers keep the lower 32 bits
        raise ValueError(value)
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(value)
    return value


def _refused(what: str) -> ConfigError:
    return ConfigError(f"not a graph that spanshot has exported: it has {what}")
