"""Export torch modules as graphs for the ground floor's engine. The graphs take their weights from the model's file.

A graph has no weights of its own. Its large initializers are named after tensors of `weights.safetensors`, with a
suffix for what the engine does with the tensor when it opens the graph; see `spanshot.engine.graph_file`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from spanshot.engine.graph_file import SMALL, source

SPAN_INPUTS = ("pieces", "mask", "first", "last", "starts", "ends")
SPAN_OUTPUTS = ("vectors", "hidden")
NAME_INPUTS = ("mean", "named")
NAME_OUTPUTS = ("weights", "bias")
OPSET = 20
_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.int8): TensorProto.INT8,
}

Weights = Mapping[str, npt.NDArray[np.float32]]
"""The tensors of the file that a graph is used with, by name."""


class SpanGraph(nn.Module):
    """Padded pieces to span vectors: a BERT encoder and a module for spans, in operations that export well."""

    def __init__(self, transformer: nn.Module, spans: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer
        self.spans = spans
        self.heads = int(transformer.config.num_attention_heads)  # type: ignore[union-attr, arg-type]

    def forward(
        self, pieces: Tensor, mask: Tensor, first: Tensor, last: Tensor, starts: Tensor, ends: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the vectors of spans [spans, size] and of all pieces [rows * width, hidden].

        ``pieces`` and ``mask`` [rows, width]; ``first`` and ``last`` [words] are places of each word's first and last
        piece among all pieces; ``starts`` and ``ends`` (exclusive) [spans] count words.
        """
        bert = self.transformer
        rows, width = pieces.shape
        parts = bert.embeddings
        hidden = parts.word_embeddings(pieces) + parts.position_embeddings.weight[:width]  # type: ignore[union-attr, operator, index]
        hidden = parts.LayerNorm(hidden + parts.token_type_embeddings.weight[0])  # type: ignore[union-attr, operator, index]
        hide = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e9  # added to the logits of attention
        for layer in bert.encoder.layer:  # type: ignore[union-attr]
            attention = layer.attention.self
            query, key, value = (
                part(hidden).view(rows, width, self.heads, -1).transpose(1, 2)
                for part in (attention.query, attention.key, attention.value)
            )  # [rows, heads, width, head size]
            logits = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + hide
            attended = (torch.softmax(logits, -1) @ value).transpose(1, 2).reshape(rows, width, -1)
            hidden = layer.attention.output.LayerNorm(layer.attention.output.dense(attended) + hidden)
            inner = F.gelu(layer.intermediate.dense(hidden))
            hidden = layer.output.LayerNorm(layer.output.dense(inner) + hidden)
        flat = hidden.reshape(rows * width, -1)
        return self.spans(flat.index_select(0, first), flat.index_select(0, last), starts, ends), flat


def span_graph(transformer: nn.Module, spans: nn.Module, weights: Weights) -> bytes:
    """Return the graph from pieces to span vectors.

    ``spans`` is called with the vectors of words by first and by last piece [words, hidden], and the starts and ends
    of spans; it returns span vectors. ``weights`` must contain the parameters of both modules.
    """
    dim = torch.export.Dim
    rows, width = dim("rows"), dim("width", max=int(transformer.config.max_position_embeddings))  # type: ignore[union-attr, arg-type]
    words, pairs = {0: dim("words")}, {0: dim("spans")}
    # The exporter merges inputs whose samples are the same tensor, so each has one of its own.
    first, last = torch.tensor([1, 2, 12, 13, 23]), torch.tensor([1, 3, 12, 13, 24])
    samples = (
        torch.randint(4, 5, (3, 11)),
        torch.ones(3, 11, dtype=torch.bool),
        first,
        last,
        torch.tensor([0, 1, 2, 2, 3, 4, 0]),
        torch.tensor([1, 2, 3, 4, 4, 5, 2]),
    )
    shapes = ({0: rows, 1: width}, {0: rows, 1: width}, words, words, pairs, pairs)
    return _exported(SpanGraph(transformer, spans), samples, shapes, SPAN_INPUTS, SPAN_OUTPUTS, weights)


def name_graph(names: nn.Module, size: int, weights: Weights) -> bytes:
    """Return the graph from the mean vectors of names to weights and bias.

    ``names`` is called with the means [labels, hidden size] and which labels have a name [labels].
    """
    labels = {0: torch.export.Dim("labels")}
    samples = (torch.randn(3, size), torch.tensor([True, False, True]))
    return _exported(names, samples, (labels, labels), NAME_INPUTS, NAME_OUTPUTS, weights)


def _exported(
    module: nn.Module,
    samples: tuple[Tensor, ...],
    shapes: tuple[object, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    weights: Weights,
) -> bytes:
    with _quiet():
        program = torch.onnx.export(
            module.eval(),
            samples,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=OPSET,
        )
    assert program is not None
    model = program.model_proto
    _take_weights_from_file(model, weights)
    _halve_gathered(model, weights)
    return _bare(model)


def _bare(model: onnx.ModelProto) -> bytes:
    """Return the graph without names of source files, shapes of intermediate values and other metadata."""
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _take_weights_from_file(model: onnx.ModelProto, weights: Weights) -> None:
    """Replace initializers by references to tensors of the weights file."""
    renamed: dict[str, str] = {}
    initializers = []
    for initializer in model.graph.initializer:
        value = numpy_helper.to_array(initializer)
        is_parameter = any(initializer.name.endswith(tensor) for tensor in weights)
        if value.dtype != np.float32 or (value.size <= SMALL and not is_parameter):
            initializers.append(initializer)
        else:
            renamed[initializer.name] = _name_in_file(initializer.name, value, weights)
    del model.graph.initializer[:]
    model.graph.initializer.extend(initializers)
    for name in sorted(set(renamed.values())):
        model.graph.initializer.append(_reference(name, weights))
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            node.input[position] = renamed.get(name, name)


def _reference(name: str, weights: Weights) -> TensorProto:
    """Return an initializer that stands for a tensor of the weights file."""
    value = source(name, weights)
    tensor = TensorProto(name=name, data_type=_TYPES[value.dtype], dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="weights.safetensors"))
    return tensor


def _name_in_file(name: str, value: npt.NDArray[np.float32], weights: Weights) -> str:
    for suffix in ("", ":T", ":row0", ":row"):
        for tensor in weights:
            with contextlib.suppress(ValueError, IndexError):
                name_in_file = source(tensor + suffix, weights)
                if name_in_file.shape == value.shape and np.array_equal(name_in_file, value):
                    return tensor + suffix
    raise ValueError(f"{name} {value.shape}: no tensor of the weights file is equal to it")


def _halve_gathered(model: onnx.ModelProto, weights: Weights) -> None:
    """Keep the table of word embeddings in half precision; the rows that are read become single precision."""
    (node,) = [
        node
        for node in model.graph.node
        if node.op_type == "Gather" and node.input[0].endswith("word_embeddings.weight")
    ] or [None]
    if node is None:
        return
    name = node.input[0]
    if not np.array_equal(weights[name].astype(np.float16).astype(np.float32), weights[name]):
        return
    (table,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    model.graph.initializer.remove(table)
    model.graph.initializer.append(_reference(f"{name}:half", weights))
    result = node.output[0]
    node.input[0], node.output[0] = f"{name}:half", f"{result}_half"
    cast = helper.make_node("Cast", [node.output[0]], [result], name=f"{node.name}_cast", to=TensorProto.FLOAT)
    model.graph.node.insert(list(model.graph.node).index(node) + 1, cast)


def quantised(graph: bytes, weights: Weights) -> bytes:
    """Return the graph with 8-bit matrix products: integers with a scale per column, quantised on opening.

    A bias that is added to a product becomes part of it, unless Gelu follows: onnxruntime joins bias and Gelu itself.
    """
    model = onnx.load_from_string(graph)
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    joined: list[onnx.NodeProto] = []
    nodes = []
    added: set[str] = set()
    for node in model.graph.node:
        if node in joined:
            continue
        if node.op_type == "MatMul" and node.input[1].endswith(":T"):
            names = [f"{node.input[1]}:{part}" for part in ("int8", "scale")]
            added.update(names)
            inputs, outputs = [node.input[0], *names], node.output
            if (adding := _addition_of_bias(node, readers, weights)) is not None:
                (bias,) = set(adding.input) - set(node.output)
                inputs, outputs = [*inputs, "", bias], adding.output
                joined.append(adding)
            nodes.append(
                helper.make_node("DynamicQuantizeMatMul", inputs, outputs, name=node.name, domain="com.microsoft")
            )
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    used_names = {name for node in model.graph.node for name in node.input}
    initializers = [tensor for tensor in model.graph.initializer if tensor.name in used_names]
    del model.graph.initializer[:]
    model.graph.initializer.extend([*initializers, *(_reference(name, weights) for name in sorted(added))])
    return _bare(model)


def _addition_of_bias(
    product: onnx.NodeProto, readers: Mapping[str, Sequence[onnx.NodeProto]], weights: Weights
) -> onnx.NodeProto | None:
    """Return the node that adds a bias to a product, if that is all that is done with the product."""
    (adding, *others) = readers[product.output[0]]
    is_bias = adding.op_type == "Add" and any(name in weights for name in adding.input)
    gelu_follows = any(node.op_type == "Gelu" for node in readers.get(adding.output[0], []))
    return adding if is_bias and not others and not gelu_follows else None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which reports its progress on standard output."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
