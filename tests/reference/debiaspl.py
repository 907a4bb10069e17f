"""DebiasPL with Python lists."""

import math
from typing import Any

from fullmatch.core import Algorithm, Batch, Network
from tests.reference.rows import (
    Row,
    best,
    column_means,
    cross_entropy,
    logits_of,
    mean,
    moving_average,
    one_hot,
    softmax,
    supervised,
)


class Reference:
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        self.spec = spec
        self.average: Row = []

    def memory(self) -> dict[str, Any]:
        return {"labeler.preference.mean": self.average}

    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        labeled, weak, strong = logits_of(student, batch.labeled[0], *batch.unlabeled)
        count = len(weak[0])
        average = self.average or [1 / count] * count
        new = column_means([softmax(row) for row in weak])
        self.average = moving_average(average, new, self.spec.momentum)
        shift = [self.spec.factor * math.log(share) for share in self.average]
        losses = []
        for teaches, learns in zip(weak, strong, strict=True):
            probs = softmax([z - s for z, s in zip(teaches, shift, strict=True)])
            margin = softmax([z + s for z, s in zip(learns, shift, strict=True)])
            used = max(probs) >= self.spec.threshold
            losses.append(cross_entropy(one_hot(best(probs), count), margin) if used else 0.0)
        return supervised(labeled, batch.labels) + self.spec.coefficient * mean(losses)
