"""SimMatch with a Python dictionary of labeled images."""

import math

import numpy as np

from fullmatch.algorithms.simmatch import SimMatch, SimMatchLoss
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    apply_layers,
    array,
    cross_entropy,
    labeled_loss,
    log_softmax,
    outputs,
    softmax,
)


def unit(row: Array) -> Array:
    return row / math.sqrt(row @ row)


class Reference:
    def __init__(self, spec: SimMatch, algorithm: SimMatchLoss) -> None:
        self.spec, self.layers = spec, algorithm.get_submodule("head.layers")
        self.rows = list(array(algorithm.bank.rows.clone()))
        self.labels: dict[int, int] = {}
        self.means: list[Array] = []

    def loss(self, network: Network, batch: Batch) -> float:
        spec = self.spec
        labeled, weak, strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
        whole = len(self.labels) == len(self.rows)
        probs = [softmax(row) for row in weak[0]]
        self.means = [*self.means, np.mean(probs, axis=0)][-spec.alignment :]
        total = 0.0
        for i, row in enumerate(probs):
            row = row / np.mean(self.means, axis=0)
            target = row = row / row.sum()
            if whole:
                labels = [self.labels[k] for k in range(len(self.rows))]
                near = softmax(self.similarities(weak[1][i]))
                votes = np.zeros_like(row)
                for share, label in zip(near, labels, strict=True):
                    votes[label] += share
                target = spec.smoothing * row + (1 - spec.smoothing) * votes
                corrected = near * row[labels]
                corrected = corrected / corrected.sum()
                student = log_softmax(self.similarities(strong[1][i]))
                total -= spec.instances * float(corrected @ student)
            if target.max() >= spec.threshold:
                total += cross_entropy(strong[0][i], target)
        self.remember(batch, labeled[1])
        return labeled_loss(labeled[0], batch.labels) + total / len(probs)

    def similarities(self, features: Array) -> Array:
        key = unit(apply_layers(self.layers, features))
        return np.array([key @ row for row in self.rows]) / self.spec.temperature

    def remember(self, batch: Batch, features: Array) -> None:
        before = list(self.rows)
        for i, (k, label) in enumerate(
            zip(batch.labeled_index.tolist(), batch.labels.tolist(), strict=True)
        ):
            key = unit(apply_layers(self.layers, features[i]))
            self.rows[k] = unit(self.spec.momentum * before[k] + (1 - self.spec.momentum) * key)
            self.labels[k] = label
