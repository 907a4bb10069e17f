"""ABC image by image, with the same draws."""

from typing import Any

import torch

from fullmatch.core import Algorithm, Batch, Network
from tests.reference.arithmetic import apply_layers, cross_entropy, labeled_loss, outputs, softmax


class Reference:
    def __init__(self, spec: Any, algorithm: Algorithm, prior: tuple[float, ...]) -> None:
        self.spec, self.head = spec, algorithm.get_submodule("head")
        self.keep = [min(prior) / share for share in prior]

    def __call__(self, student: Network, batch: Batch, progress: float) -> float:
        labeled, weak, strong = outputs(student, [batch.labeled[0], *batch.unlabeled])
        draws = torch.rand(len(batch.labels) + len(weak[0])).tolist()
        total = labeled_loss(labeled[0], batch.labels)
        for i, label in enumerate(batch.labels.tolist()):
            if draws[i] < self.keep[label]:
                row = apply_layers(self.head, labeled[1][i])
                total += self.spec.balanced * cross_entropy(row, label) / len(labeled[0])
        for i in range(len(weak[0])):
            probs = softmax(weak[0][i])
            if probs.max() >= self.spec.threshold:
                loss = cross_entropy(strong[0][i], int(probs.argmax()))
                total += self.spec.coefficient * loss / len(weak[0])
            guess = softmax(apply_layers(self.head, weak[1][i]))
            label = int(guess.argmax())
            kept = draws[len(batch.labels) + i] < 1 - progress * (1 - self.keep[label])
            if kept and guess.max() >= self.spec.balanced_threshold:
                row = apply_layers(self.head, strong[1][i])
                total += self.spec.balanced * cross_entropy(row, label) / len(weak[0])
        return total
