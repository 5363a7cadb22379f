"""Export a trained `linear` method: the files that the ground floor's engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors import numpy as tensors
from torch import Tensor, nn

from spanshot.checkpoint import Checkpoint
from spanshot.engine.files import EngineSettings, PieceSettings, answers, open_encoder
from spanshot.engine.layout import ENGINE, NAMES, SPANS, SPANS_INT8, TOKENIZER, WEIGHTS
from spanshot.errors import ConfigError
from spanshot.heads.settings import ScoreSettings
from spanshot.manifest import Manifest, StoredFile
from spanshot.research import checkpoint
from spanshot.research.export import name_graph, quantised, span_graph
from spanshot.research.methods import Method
from spanshot.research.methods.linear import Linear
from spanshot.research.nn.linear_spans import PRIOR_SCALE, NamePrior
from spanshot.types import Progress, SupportSet

SCORES = ScoreSettings(
    slope=1.68,
    shift=-0.375,
    per_log_count=0.14,
    threshold=-0.85,
    threshold_per_log_count=0.2,
    name_slope=1.64,
    name_shift=-0.665,
    name_threshold=-0.5,
)
"""Calibration and thresholds, fitted to `user_like` with the weights of an interim model."""


class Names(nn.Module):
    """The prior of labels, some of which have no name."""

    def __init__(self, prior: NamePrior) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, mean: Tensor, named: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights [labels, size] and bias [labels], given mean vectors and which labels have a name."""
        prior = self.prior
        inner = F.gelu(prior.hidden(mean))
        weights = torch.where(named[:, None], prior.out(inner), prior.nameless_weights[None])
        return PRIOR_SCALE * weights, torch.where(named, prior.bias(inner).squeeze(1), prior.nameless_bias)


def engine_files(method: Method, scores: ScoreSettings = SCORES) -> dict[str, bytes]:
    """Return the engine's files of a method: graphs, weights in half precision, tokenizer and settings."""
    if not isinstance(method, Linear):
        raise ConfigError(f"only models of the method 'linear' can be exported; this one is {method.name!r}")
    transformer = method.encoder.transformer
    if transformer.config.model_type != "bert" or transformer.config.hidden_act != "gelu":  # type: ignore[union-attr]
        raise ConfigError("only models with a BERT encoder can be exported")
    halves = {name: _half(value) for name, value in method.state_dict().items() if value.is_floating_point()}
    exact = {name: value.astype(np.float32) for name, value in halves.items()}
    method.load_state_dict({name: torch.from_numpy(value) for name, value in exact.items()}, strict=False)
    pieces = method.encoder.pieces
    graph = span_graph(transformer, method.spans, exact)
    files = {
        SPANS: graph,
        SPANS_INT8: quantised(graph, exact),
        NAMES: name_graph(Names(method.names), method.encoder.size, exact),
        WEIGHTS: tensors.save(halves),
        TOKENIZER: pieces.tokenizer.to_str(pretty=False).encode(),
    }
    settings = EngineSettings(
        PieceSettings(pieces.longest, pieces.padding_id, pieces.unknown or ""),
        method.head_settings(),
        scores,
        longest=method.settings.longest,
    )
    return {ENGINE: _with_answers(files, settings).to_toml().encode(), **files}


def finetuned_files(
    files: Mapping[str, bytes], support: SupportSet, scores: ScoreSettings, progress: Progress | None = None
) -> dict[str, bytes] | None:
    """Return the files of a model after fine-tuning on a support set; None if the set is too small."""
    if checkpoint.MODEL not in files:
        raise ConfigError(f"this model cannot be fine-tuned: it has no file {checkpoint.MODEL!r}")
    manifest = Manifest("model", {name: StoredFile.of(name, content) for name, content in files.items()}, ())
    saved = checkpoint.open_model(Checkpoint(Path("model"), manifest, files))
    tuned = saved.method.finetuned(support, progress)
    if tuned is None:
        return None
    return {**engine_files(tuned, scores), checkpoint.MODEL: files[checkpoint.MODEL]}


def _half(value: Tensor) -> npt.NDArray[np.float16]:
    half: npt.NDArray[np.float16] = value.detach().cpu().half().contiguous().numpy()
    return half


def _with_answers(files: Mapping[str, bytes], settings: EngineSettings) -> EngineSettings:
    """Return the settings with the answers to the test of the exported model."""
    encoder = open_encoder(files, settings, threads=1, check=False)
    return replace(settings, test=answers(encoder))
