"""Learning rates: one for the encoder, another for all other weights."""

from __future__ import annotations

from typing import Any

from torch import nn


def rate_groups(module: nn.Module, encoder_rate: float, head_rate: float) -> list[dict[str, Any]]:
    """Return parameter groups for an optimizer: the encoder, all other weights, and settings; without frozen ones.

    Settings are the parameters of modules with a ``rate_factor``, which multiplies their rate; they do not decay.
    """
    factors = {
        id(weight): float(part.rate_factor)  # type: ignore[arg-type]
        for part in module.modules()
        if hasattr(part, "rate_factor")
        for weight in part.parameters()
    }
    trained = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
    encoder = [weight for name, weight in trained if name.startswith("encoder.")]
    head_weights = [weight for name, weight in trained if not name.startswith("encoder.") and id(weight) not in factors]
    groups = ((encoder, encoder_rate), (head_weights, head_rate))
    return [
        *({"params": weights, "lr": rate} for weights, rate in groups if weights),
        *(
            {"params": [weight], "lr": head_rate * factors[id(weight)], "weight_decay": 0.0}
            for _, weight in trained
            if id(weight) in factors
        ),
    ]
