"""AlphaMatch's step, image by image, for orders whose target is a power mean."""

import numpy as np

from fullmatch.algorithms.alphamatch import AlphaMatch
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import Array, labeled_loss, outputs, softmax


def divergence(p: Array, r: Array, order: float) -> float:
    return (sum(a**order * b ** (1 - order) for a, b in zip(p, r, strict=True)) - 1) / (
        order * (order - 1)
    )


def power_mean(rows: list[Array], order: float) -> Array:
    mean = np.array([sum(row[c] ** order for row in rows) for c in range(rows[0].size)])
    mean = mean ** (1 / order)
    return mean / mean.sum()


def objective(target: Array, weak: Array, strong: list[Array], spec: AlphaMatch) -> float:
    """What the target minimizes."""
    return divergence(weak, target, spec.beta) + sum(
        divergence(target, view, spec.alpha) for view in strong
    )


def loss(network: Network, batch: Batch, spec: AlphaMatch) -> float:
    labeled, weak, *strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
    total = 0.0
    for i in range(len(weak[0])):
        views = [softmax(view[0][i]) for view in strong]
        first = softmax(weak[0][i])
        target = power_mean([first, *views], spec.beta)
        apart = sum(divergence(target, view, spec.alpha) for view in views)
        own = spec.weak_weight * divergence(first, target, spec.beta)
        total += spec.coefficient * (own + apart)
    return labeled_loss(labeled[0], batch.labels) + total / len(weak[0])
