"""Simple references of the methods that compare two predictions without selection."""

import copy
from typing import Any

import torch
from torch import Tensor

from fullmatch.core import Algorithm, Batch, Network
from tests.reference.rows import best, cross_entropy, logits_of, mean, one_hot, softmax, supervised


class Memoryless:
    def __init__(self, spec: Any, algorithm: Algorithm) -> None:
        self.spec = spec

    def memory(self) -> dict[str, Any]:
        return {}

    def ramp(self, progress: float) -> float:
        return min(1.0, progress / self.spec.ramp)


def squared(rows: list[list[float]], others: list[list[float]]) -> float:
    return mean(
        [
            (a - b) ** 2
            for row, other in zip(rows, others, strict=True)
            for a, b in zip(row, other, strict=True)
        ]
    )


class PiModel(Memoryless):
    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        [labeled] = logits_of(student, batch.labeled[0])
        views = [logits_of(student, view)[0] for view in batch.unlabeled]
        first, second = [[softmax(row) for row in view] for view in views]
        weight = self.spec.coefficient * self.ramp(progress)
        return supervised(labeled, batch.labels) + weight * squared(first, second)


class MeanTeacher(Memoryless):
    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        [labeled] = logits_of(student, batch.labeled[0])
        [old] = logits_of(teacher, batch.unlabeled[0])
        [new] = logits_of(student, batch.unlabeled[1])
        distance = squared([softmax(row) for row in new], [softmax(row) for row in old])
        weight = self.spec.coefficient * self.ramp(progress)
        return supervised(labeled, batch.labels) + weight * distance


class PseudoLabel(Memoryless):
    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        [labeled] = logits_of(student, batch.labeled[0])
        [weak] = logits_of(student, batch.unlabeled[0])
        losses = []
        for row in weak:
            probs = softmax(row)
            sure = max(probs) >= self.spec.threshold
            losses.append(cross_entropy(one_hot(best(probs), len(row)), probs) if sure else 0.0)
        weight = self.spec.coefficient * self.ramp(progress)
        return supervised(labeled, batch.labels) + weight * mean(losses)


class VAT(Memoryless):
    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        images = batch.unlabeled[0]
        [labeled] = logits_of(student, batch.labeled[0])
        [clean] = logits_of(student, images)
        probs = [softmax(row) for row in clean]
        [changed] = logits_of(student, images + self.perturbation(student, images, probs))
        divergence = mean(
            [
                cross_entropy(p, softmax(row)) - cross_entropy(p, p)
                for p, row in zip(probs, changed, strict=True)
            ]
        )
        weight = self.spec.coefficient * self.ramp(progress)
        entropy = mean([cross_entropy(p, p) for p in probs])
        total = supervised(labeled, batch.labels) + weight * divergence
        return total + self.spec.entropy * entropy

    def perturbation(self, student: Network, images: Tensor, probs: list[list[float]]) -> Tensor:
        direction = torch.randn_like(images)
        for _ in range(self.spec.iterations):
            small = self.scaled(direction, self.spec.xi).requires_grad_()
            logits = copy.deepcopy(student)(images + small).logits
            loss = -(torch.tensor(probs, dtype=images.dtype) * logits.log_softmax(1)).sum()
            [direction] = torch.autograd.grad(loss, small)
        return self.scaled(direction, self.spec.epsilon)

    def scaled(self, direction: Tensor, length: float) -> Tensor:
        return torch.stack([length * picture / picture.norm() for picture in direction])
