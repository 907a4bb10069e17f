"""Simple references of FixMatch variants that differ in their selection."""

import math
from statistics import variance
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
    normalize,
    one_hot,
    softmax,
    supervised,
)


class Family:
    """Labeled loss + weighted consistency loss + an additional loss."""

    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        self.spec = spec

    def memory(self) -> dict[str, Any]:
        return {}

    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        self.batch = batch
        labeled, weak, strong = logits_of(student, batch.labeled[0], *batch.unlabeled)
        pseudo = self.label(labeled, weak, progress)
        probs = [softmax(row) for row in strong]
        losses = [w * cross_entropy(t, p) for (t, w), p in zip(pseudo, probs, strict=True)]
        total = self.labeled_loss(labeled, progress) + self.spec.coefficient * mean(losses)
        selected = [p for (_, w), p in zip(pseudo, probs, strict=True) if w]
        return total + self.addition(selected, weak, strong)

    def labeled_loss(self, labeled: list[Row], progress: float) -> float:
        return supervised(labeled, self.batch.labels)

    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        """Target and weight of each image."""
        raise NotImplementedError

    def addition(self, selected: list[Row], weak: list[Row], strong: list[Row]) -> float:
        return 0.0


class UDA(Family):
    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        return [
            (softmax(row, self.spec.temperature), float(max(softmax(row)) >= self.spec.threshold))
            for row in weak
        ]

    def labeled_loss(self, labeled: list[Row], progress: float) -> float:
        if self.spec.annealing == "none":
            return supervised(labeled, self.batch.labels)
        share = {
            "linear": progress,
            "exp": math.exp(5 * (progress - 1)),
            "log": 1 - math.exp(-5 * progress),
        }[self.spec.annealing]
        num_classes = len(labeled[0])
        ceiling = share * (1 - 1 / num_classes) + 1 / num_classes
        losses = []
        for row, label in zip(labeled, self.batch.labels.tolist(), strict=True):
            probs = softmax(row)
            losses.append(-math.log(probs[label]) if max(probs) <= ceiling else 0.0)
        return mean(losses)


class Dash(Family):
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        super().__init__(spec, algorithm)
        self.steps, self.losses, self.start = 0, [0.0], 0.0

    def memory(self) -> dict[str, Any]:
        return {
            "labeler.steps": self.steps,
            "labeler.labeled_loss": mean(self.losses),
            "labeler.start": self.start,
        }

    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        spec = self.spec
        warming = self.steps < spec.warmup and progress < spec.longest_warmup
        if warming:
            loss = supervised(labeled, self.batch.labels)
            self.losses = [loss] if self.steps == 0 else [*self.losses, loss]
            self.start = progress
        self.steps += 1
        falls = math.floor((progress - self.start) / spec.every)
        rho = max(spec.factor * mean(self.losses) / spec.gamma**falls, spec.rho_min)
        pseudo = []
        for row in weak:
            probs = softmax(row)
            hard = rho == spec.rho_min
            target = one_hot(best(probs), len(row)) if hard else softmax(row, spec.temperature)
            pseudo.append((target, float(not warming and cross_entropy(target, probs) <= rho)))
        return pseudo


class FreeMatch(Family):
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        super().__init__(spec, algorithm)
        self.confidence: float | None = None

    def memory(self) -> dict[str, Any]:
        return {
            "labeler.weighting.confidence": self.confidence,
            "labeler.weighting.probs": self.probs,
            "labeler.weighting.labels": self.labels,
        }

    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        momentum = self.spec.momentum
        rows = [softmax(row) for row in weak]
        count = len(rows[0])
        if self.confidence is None:
            self.confidence = 1 / count
            self.probs = self.labels = [1 / count] * count
        [self.confidence] = moving_average(
            [self.confidence], [mean([max(p) for p in rows])], momentum
        )
        self.probs = moving_average(self.probs, column_means(rows), momentum)
        self.labels = moving_average(
            self.labels, column_means([one_hot(best(p), count) for p in rows]), momentum
        )
        pseudo = []
        for probs in rows:
            label = best(probs)
            threshold = self.confidence * self.probs[label] / max(self.probs)
            threshold = min(max(threshold, self.spec.floor), self.spec.threshold)
            pseudo.append((one_hot(label, count), float(max(probs) >= threshold)))
        return pseudo

    def addition(self, selected: list[Row], weak: list[Row], strong: list[Row]) -> float:
        if not selected:
            return 0.0
        count = len(selected[0])
        frequency = column_means([one_hot(best(p), count) for p in selected])
        target = normalize([p / h for p, h in zip(self.probs, self.labels, strict=True)])
        average = column_means(selected)
        current = normalize([p / h if h else 0.0 for p, h in zip(average, frequency, strict=True)])
        pairs = zip(target, current, strict=True)
        return self.spec.fairness * sum(a * math.log(b + 1e-12) for a, b in pairs)


class SoftMatch(Family):
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        super().__init__(spec, algorithm)
        self.mean: float | None = None

    def memory(self) -> dict[str, Any]:
        return {
            "labeler.weight.mean": self.mean,
            "labeler.weight.variance": self.variance,
            "labeler.predicted.mean": self.predicted,
        }

    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        momentum = self.spec.momentum
        rows, known = [softmax(row) for row in weak], [softmax(row) for row in labeled]
        count = len(rows[0])
        labeled_target = self.spec.alignment == "labeled"
        if self.mean is None:
            self.mean, self.variance = 1 / count, 1.0
            self.wanted = [1 / count] * count
            self.predicted = self.wanted if labeled_target else column_means(rows)
        self.predicted = moving_average(self.predicted, column_means(rows), momentum)
        if labeled_target:
            self.wanted = moving_average(self.wanted, column_means(known), momentum)
        aligned = []
        for probs in rows:
            triples = zip(probs, self.wanted, self.predicted, strict=True)
            aligned.append(normalize([p * (y + 1e-6) / (m + 1e-6) for p, y, m in triples]))
        largest = [max(p) for p in (rows if labeled_target else aligned)]
        self.mean = moving_average([self.mean], [mean(largest)], momentum)[0]
        self.variance = moving_average([self.variance], [variance(largest)], momentum)[0]
        pseudo = []
        for probs, other in zip(rows, aligned, strict=True):
            below = min(max(other) - self.mean, 0.0)
            width = self.variance / self.spec.deviations**2
            pseudo.append((one_hot(best(probs), count), math.exp(-(below**2) / (2 * width))))
        return pseudo


class NS3L(Family):
    def label(
        self, labeled: list[Row], weak: list[Row], progress: float
    ) -> list[tuple[Row, float]]:
        rows = [softmax(row) for row in weak]
        return [(one_hot(best(p), len(p)), float(max(p) >= self.spec.threshold)) for p in rows]

    def addition(self, selected: list[Row], weak: list[Row], strong: list[Row]) -> float:
        losses = []
        for teaches, learns in zip(weak, strong, strict=True):
            pairs = zip(softmax(teaches), softmax(learns), strict=True)
            ruled_out = sum(p for q, p in pairs if q < self.spec.negative_threshold)
            losses.append(-math.log(max(1 - ruled_out, 1e-8)))
        return self.spec.negative_coefficient * mean(losses)
