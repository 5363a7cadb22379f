"""Learning rates: one for the encoder, another for all other weights."""

from __future__ import annotations

from typing import Any

from torch import nn


def rate_groups(module: nn.Module, encoder_rate: float, head_rate: float) -> list[dict[str, Any]]:
    """Return parameter groups for an optimizer: the encoder and all other weights, without frozen ones."""
    trained = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
    encoder = [weight for name, weight in trained if name.startswith("encoder.")]
    others = [weight for name, weight in trained if not name.startswith("encoder.")]
    groups = ((encoder, encoder_rate), (others, head_rate))
    return [{"params": weights, "lr": rate} for weights, rate in groups if weights]
