"""CoMatch with Python lists: batch means, bank rows, and a graph by two loops."""

import math

import numpy as np

from fullmatch.algorithms.comatch import CoMatch
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    apply_layers,
    cross_entropy,
    labeled_loss,
    outputs,
    softmax,
)


def graph(probs: list[Array], cut: float) -> Array:
    links = np.zeros((len(probs), len(probs)))
    for i, one in enumerate(probs):
        for j, other in enumerate(probs):
            link = 1.0 if i == j else float(one @ other)
            links[i, j] = link if link >= cut else 0.0
        links[i] /= links[i].sum()
    return links


class Reference:
    def __init__(self, spec: CoMatch, head: object) -> None:
        self.spec, self.head = spec, head
        self.means: list[Array] = []
        self.bank: list[tuple[Array, Array]] = []  # oldest first

    def embedded(self, features: Array) -> list[Array]:
        rows = [apply_layers(self.head.layers, row) for row in features]  # type: ignore[attr-defined]
        return [row / math.sqrt(row @ row) for row in rows]

    def loss(self, network: Network, batch: Batch) -> float:
        spec = self.spec
        labeled, weak, first, second = outputs(network, [batch.labeled[0], *batch.unlabeled])
        keys, teacher = self.embedded(labeled[1]), self.embedded(weak[1])
        probs = [softmax(row) for row in weak[0]]
        self.means = [*self.means, np.mean(probs, axis=0)][-spec.alignment :]
        probs = [row / np.mean(self.means, axis=0) for row in probs]
        probs = [row / row.sum() for row in probs]
        smoothed = [self.smooth(*pair) for pair in zip(probs, teacher, strict=True)]
        truth = np.eye(probs[0].size)[batch.labels.numpy()]
        self.bank += [*zip(teacher, probs, strict=True), *zip(keys, truth, strict=True)]
        self.bank = self.bank[-spec.bank :]
        one, other = self.embedded(first[1]), self.embedded(second[1])
        links = graph(smoothed, spec.cut)
        total = 0.0
        for i, target in enumerate(smoothed):
            if target.max() >= spec.threshold:
                total += cross_entropy(first[0][i], target)
            alike = np.array([one[i] @ key for key in other]) / spec.temperature
            total += spec.contrast * cross_entropy(alike, links[i])
        return labeled_loss(labeled[0], batch.labels) + total / len(smoothed)

    def smooth(self, probs: Array, key: Array) -> Array:
        if len(self.bank) < self.spec.bank:
            return probs
        near = softmax(np.array([key @ other for other, _ in self.bank]) / self.spec.temperature)
        votes = sum(share * vote for share, (_, vote) in zip(near, self.bank, strict=True))
        return self.spec.smoothing * probs + (1 - self.spec.smoothing) * votes
