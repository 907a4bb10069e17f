"""IOMatch's step, image by image."""

import math

import numpy as np
from torch import nn

from fullmatch.algorithms.iomatch import InlierHeads, IOMatch
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    apply_layers,
    array,
    cross_entropy,
    labeled_loss,
    outputs,
    softmax,
)


class Reference:
    def __init__(self, spec: IOMatch, heads: InlierHeads) -> None:
        self.spec, self.heads = spec, heads
        self.means: list[Array] = []

    def loss(self, network: Network, batch: Batch, progress: float) -> float:
        spec = self.spec
        labeled, weak, strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
        total = labeled_loss(labeled[0], batch.labels)
        for features, label in zip(labeled[1], batch.labels.tolist(), strict=True):
            pairs = self.no_and_yes(features)
            hardest = max(-math.log(no) for k, (no, _) in enumerate(pairs) if k != label)
            own = -math.log(pairs[label][1])
            total += spec.one_vs_all * (own + hardest) / len(batch.labels)
        images = len(weak[0])
        for i, probs in enumerate(self.aligned([softmax(row) for row in weak[0]])):
            target = self.target(probs, weak[1][i])
            if probs.max() >= spec.threshold and target[-1] < 0.5:
                total += spec.coefficient * cross_entropy(strong[0][i], probs) / images
            if target.max() >= spec.open_threshold and progress >= spec.open_start:
                logits = apply_layers(self.heads.open_set, self.projected(strong[1][i]))
                total += spec.open_weight * cross_entropy(logits, target) / images
        return total

    def aligned(self, probs: list[Array]) -> list[Array]:
        if not self.spec.align:
            return probs
        self.means = [*self.means, np.mean(probs, axis=0)][-self.spec.batches :]
        scaled = [row / np.mean(self.means, axis=0) for row in probs]
        return [row / row.sum() for row in scaled]

    def target(self, probs: Array, features: Array) -> Array:
        """Each class times its yes; all the no together are the unknown class."""
        pairs = self.no_and_yes(features)
        known = [p * yes for p, (_, yes) in zip(probs, pairs, strict=True)]
        return np.array([*known, sum(p * no for p, (no, _) in zip(probs, pairs, strict=True))])

    def no_and_yes(self, features: Array) -> list[Array]:
        """A pair of probabilities for each class."""
        row = array(self.heads.one_vs_all.weight) @ self.projected(features)
        return [softmax(np.array(pair)) for pair in zip(*np.split(row, 2), strict=True)]

    def projected(self, features: Array) -> Array:
        projection: nn.Module = self.heads.projection
        return apply_layers(projection, features)
