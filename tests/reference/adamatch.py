"""AdaMatch with Python lists; the weights of the interpolation are drawn as one table."""

import math
from typing import Any

import torch

from fullmatch.core import Algorithm, Batch, Network
from tests.reference.rows import (
    Row,
    best,
    column_means,
    cross_entropy,
    logits_of,
    mean,
    moving_average,
    normalize,
    one_hot,
    softmax,
    supervised,
)


class Reference:
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        self.spec = spec
        self.predicted: Row | None = None
        self.wanted: Row = []

    def memory(self) -> dict[str, Any]:
        return {"labeler.predicted.mean": self.predicted, "labeler.wanted.mean": self.wanted}

    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        joint = logits_of(student, *batch.labeled, *batch.unlabeled)
        separate = logits_of(student, *batch.labeled)
        count = len(batch.labels)
        draws = torch.rand(2 * count, len(joint[0][0])).tolist()
        labeled = [
            [
                interpolate(a, b, draws[view * count + i])
                for i, (a, b) in enumerate(zip(joint[view], separate[view], strict=True))
            ]
            for view in range(2)
        ]
        known = [softmax(row) for row in labeled[0]]
        threshold = self.spec.threshold * mean([max(row) for row in known])
        rows = [softmax(row) for row in joint[2]]
        self.remember(rows, known)
        losses = []
        for weak, strong in zip(rows, joint[3], strict=True):
            probs = self.align(weak)
            target = one_hot(best(probs), len(probs))
            used = max(probs) >= threshold
            losses.append(cross_entropy(target, softmax(strong)) if used else 0.0)
        share = min(progress / self.spec.ramp, 1.0) if self.spec.ramp else 1.0
        weight = self.spec.coefficient * (1 - math.cos(math.pi * share)) / 2
        both = mean([supervised(rows, batch.labels) for rows in labeled])
        return both + weight * mean(losses)

    def remember(self, rows: list[Row], known: list[Row]) -> None:
        if self.predicted is None:
            self.predicted, self.wanted = column_means(rows), column_means(known)
        else:
            momentum = self.spec.momentum
            self.predicted = moving_average(self.predicted, column_means(rows), momentum)
            self.wanted = moving_average(self.wanted, column_means(known), momentum)

    def align(self, probs: Row) -> Row:
        assert self.predicted is not None
        triples = zip(probs, self.wanted, self.predicted, strict=True)
        return normalize([p * (y + 1e-6) / (m + 1e-6) for p, y, m in triples])


def interpolate(first: Row, second: Row, weights: Row) -> Row:
    return [a + w * (b - a) for a, b, w in zip(first, second, weights, strict=True)]
