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

from spanshot.checkpoint import Checkpoint, packaged_folder, read_checkpoint
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


def packaged_scores() -> ScoreSettings:
    """Return the calibration and thresholds of the model in the package."""
    files = read_checkpoint(packaged_folder(), [ENGINE]).files
    return EngineSettings.parse(files[ENGINE].decode("utf-8")).scores


def exported_files(
    saved: checkpoint.SavedModel, scores: ScoreSettings | None = None, *, int8: bool = True, half: bool = True
) -> dict[str, bytes]:
    """Return the files of a model folder for the base install; fine-tuning it is possible, too."""
    files = engine_files(saved.method, scores, int8=int8, half=half)
    described = checkpoint.model_files(saved.method, saved.settings)  # of weights that are rounded by now
    return {**files, checkpoint.MODEL: described[checkpoint.MODEL]}


def engine_files(
    method: Method, scores: ScoreSettings | None = None, *, int8: bool = True, half: bool = True
) -> dict[str, bytes]:
    """Return the engine's files of a method: graphs, weights (in half precision by default), tokenizer and settings.

    ``scores`` are calibration and thresholds, by default those of the model in the package.
    """
    if not isinstance(method, Linear):
        raise ConfigError(f"only models of the method 'linear' can be exported; this one is {method.name!r}")
    transformer = method.encoder.transformer
    if transformer.config.model_type != "bert" or transformer.config.hidden_act != "gelu":  # type: ignore[union-attr]
        raise ConfigError("only models with a BERT encoder can be exported")
    stored = {name: _stored(value, half) for name, value in method.state_dict().items() if value.is_floating_point()}
    exact = {name: value.astype(np.float32) for name, value in stored.items()}
    method.load_state_dict({name: torch.from_numpy(value) for name, value in exact.items()}, strict=False)
    pieces = method.encoder.pieces
    graph = span_graph(transformer, method.spans, exact)
    files = {
        SPANS: graph,
        **({SPANS_INT8: quantised(graph, exact)} if int8 else {}),
        NAMES: name_graph(Names(method.names), method.encoder.size, exact),
        WEIGHTS: tensors.save(stored),
        TOKENIZER: pieces.tokenizer.to_str(pretty=False).encode(),
    }
    settings = EngineSettings(
        PieceSettings(pieces.longest, pieces.padding_id, pieces.unknown or ""),
        method.head_settings(),
        scores or packaged_scores(),
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
    engine = engine_files(tuned, scores, int8=SPANS_INT8 in files)
    return {**engine, checkpoint.MODEL: files[checkpoint.MODEL]}


def _stored(value: Tensor, half: bool) -> npt.NDArray[np.floating]:
    value = value.detach().cpu()
    stored: npt.NDArray[np.floating] = (value.half() if half else value.float()).contiguous().numpy()
    return stored


def _with_answers(files: Mapping[str, bytes], settings: EngineSettings) -> EngineSettings:
    """Return the settings with the answers to the test of the exported model."""
    encoder = open_encoder(files, settings, threads=1, check=False)
    return replace(settings, test=answers(encoder))
