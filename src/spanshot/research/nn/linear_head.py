"""The linear head in torch: penalised logistic regression that gradients flow through.

L. Bertinetto, J. Henriques, P. Torr, A. Vedaldi: Meta-learning with differentiable closed-form solvers, ICLR 2019.
There, a ridge or logistic regression on the support set is the inner step of training. Here each label has its own
regression on span vectors, which shrinks towards a weight vector made from the label's name. Departure: the
regression is solved by Newton steps to convergence, without gradients; one further step, whose Hessian is a
constant, gives the exact gradient of the solution (implicit differentiation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanshot.heads.settings import HeadSettings as PlainHeadSettings

NEWTON_STEPS = 8
HALVINGS = 4
TOLERANCE = 1e-2  # the implicit step that follows makes up for the rest


@dataclass(frozen=True, slots=True)
class Penalties:
    """Strengths of the shrinkage, each a positive scalar or one per label."""

    weights: Tensor  # of the weights towards factor times the prior's weights
    factor: Tensor  # of the prior's factor towards 1
    bias: Tensor  # of the bias towards the prior's; small, so that examples decide


@dataclass(frozen=True, slots=True)
class Fitted:
    """A linear scorer per label."""

    weights: Tensor  # [labels, size]
    bias: Tensor  # [labels]
    factor: Tensor  # [labels], of the prior's weights

    def scores(self, vectors: Tensor) -> Tensor:
        """Score each span for each label. [spans, labels]"""
        return vectors @ self.weights.T + self.bias


class HeadSettings(nn.Module):
    """The trained settings of the head: penalties, weight of the background, and a final shift of the scores."""

    rate_factor = 3.0  # single numbers may move faster than matrices

    def __init__(self) -> None:
        super().__init__()
        self.log_shrink = nn.Parameter(torch.tensor([math.log(0.05), math.log(0.05)]))  # named, nameless
        self.log_factor = nn.Parameter(torch.tensor([math.log(1.0), math.log(1.0)]))
        self.log_background = nn.Parameter(torch.tensor(math.log(50.0)))
        self.slope = nn.Parameter(torch.tensor(1.0))
        self.shift = nn.Parameter(torch.tensor(0.0))
        self.shift_per_log_count = nn.Parameter(torch.tensor(0.0))
        self.match = nn.Parameter(torch.tensor(1.5))
        self.bias_penalty: Tensor
        self.register_buffer("bias_penalty", torch.tensor(0.01))

    def penalties(self, named: bool) -> Penalties:
        """Return the penalties for labels with or without a name."""
        kind = 0 if named else 1
        return Penalties(self.log_shrink[kind].exp(), self.log_factor[kind].exp(), self.bias_penalty)

    def plain(self) -> PlainHeadSettings:
        """Return the settings as numbers, for the head in numpy."""
        shrink, factor = self.log_shrink.detach().exp().tolist(), self.log_factor.detach().exp().tolist()
        return PlainHeadSettings(
            shrink_named=shrink[0],
            shrink_nameless=shrink[1],
            factor_named=factor[0],
            factor_nameless=factor[1],
            bias=self.bias_penalty.item(),
            background=self.log_background.detach().exp().item(),
            slope=self.slope.item(),
            shift=self.shift.item(),
            shift_per_log_count=self.shift_per_log_count.item(),
            match=self.match.item(),
        )

    def final(self, scores: Tensor, counts: Tensor, matches: Tensor) -> Tensor:
        """Turn fitted scores into logits. [spans, labels]

        ``counts`` are the examples of each label; ``matches`` say for each span and label in which share of its
        occurrences in the support the span's text has the label.
        """
        return self.slope * scores + self.shift + self.shift_per_log_count * counts.log() + self.match * matches


def fit(
    rows: Tensor,
    targets: Tensor,
    row_weights: Tensor,
    prior_weights: Tensor,
    prior_bias: Tensor,
    penalties: Penalties,
    steps: int = NEWTON_STEPS,
) -> Fitted:
    """Fit one penalised logistic regression per label.

    ``rows`` [rows, size] are span vectors, ``targets`` and ``row_weights`` [labels, rows]; the prior is one weight
    vector [labels, size] and bias [labels] per label. A label's weights are ``factor * prior + own``.
    """
    theta, lower = _solve(
        rows.detach(),
        targets,
        row_weights.detach(),
        prior_weights.detach(),
        prior_bias.detach(),
        Penalties(penalties.weights.detach(), penalties.factor.detach(), penalties.bias.detach()),
        steps,
    )
    features = _features(rows, prior_weights)
    strength, centre = _prior(prior_weights, prior_bias, penalties)
    gradient = _gradient(features, targets, row_weights, theta, strength, centre)
    theta = theta - torch.cholesky_solve(gradient.unsqueeze(2), lower).squeeze(2)  # [labels, size + 2]
    weights, factor, bias = theta[:, :-2], theta[:, -2], theta[:, -1]
    return Fitted(weights + factor.unsqueeze(1) * prior_weights, bias, factor)


def _features(rows: Tensor, prior_weights: Tensor) -> Tensor:
    """Append the prior's score and a one to each row. [labels, rows, size + 2]"""
    labels, count = len(prior_weights), len(rows)
    prior_scores = (prior_weights @ rows.T).unsqueeze(2)  # [labels, rows, 1]
    ones = torch.ones_like(prior_scores)
    return torch.cat([rows.expand(labels, count, -1), prior_scores, ones], 2)


def _prior(prior_weights: Tensor, prior_bias: Tensor, penalties: Penalties) -> tuple[Tensor, Tensor]:
    """Return strength [size + 2] and centre [labels, size + 2] of the penalty."""
    labels, size = prior_weights.shape
    strength = torch.cat([penalties.weights.expand(size), penalties.factor.view(1), penalties.bias.view(1)])
    centre = torch.cat(
        [prior_weights.new_zeros(labels, size), prior_weights.new_ones(labels, 1), prior_bias.unsqueeze(1)], 1
    )
    return strength, centre


def _gradient(
    features: Tensor, targets: Tensor, weights: Tensor, theta: Tensor, strength: Tensor, centre: Tensor
) -> Tensor:
    scores = (features @ theta.unsqueeze(2)).squeeze(2)  # [labels, rows]
    residual = weights * (scores.sigmoid() - targets)
    return (features.transpose(1, 2) @ residual.unsqueeze(2)).squeeze(2) + strength * (theta - centre)


@torch.no_grad()
def _solve(
    rows: Tensor,
    targets: Tensor,
    weights: Tensor,
    prior_weights: Tensor,
    prior_bias: Tensor,
    penalties: Penalties,
    steps: int,
) -> tuple[Tensor, Tensor]:
    """Return the solution [labels, size + 2] and the Cholesky factor of the Hessian there."""
    features = _features(rows, prior_weights)
    strength, centre = _prior(prior_weights, prior_bias, penalties)
    theta = centre.clone()

    def objective(at: Tensor) -> tuple[Tensor, Tensor]:
        scores = (features @ at.unsqueeze(2)).squeeze(2)
        loss = (weights * F.softplus(torch.where(targets > 0.5, -scores, scores))).sum(1)
        return loss + 0.5 * (strength * (at - centre) ** 2).sum(1), scores

    def factor(scores: Tensor) -> Tensor:
        chance = scores.sigmoid()
        curvature = weights * (chance * (1 - chance)).clamp_min(1e-4)
        hessian = features.transpose(1, 2) @ (curvature.unsqueeze(2) * features)
        hessian.diagonal(dim1=1, dim2=2).add_(strength)
        lower: Tensor = torch.linalg.cholesky_ex(hessian)[0]
        return lower

    value, scores = objective(theta)
    for _ in range(steps):
        residual = weights * (scores.sigmoid() - targets)
        gradient = (features.transpose(1, 2) @ residual.unsqueeze(2)).squeeze(2) + strength * (theta - centre)
        move = torch.cholesky_solve(gradient.unsqueeze(2), factor(scores)).squeeze(2)
        size = torch.ones_like(theta[:, :1])
        for _ in range(HALVINGS):
            value_there, scores_there = objective(theta - size * move)
            worse = value_there > value + 1e-4
            if not bool(worse.any()):
                break
            size = torch.where(worse.unsqueeze(1), size / 3, size)
        else:
            value_there, scores_there = objective(theta - size * move)
        theta = theta - size * move
        gain = float((value - value_there).abs().max())
        value, scores = value_there, scores_there
        if gain < TOLERANCE:
            break
    return theta, factor(scores)
