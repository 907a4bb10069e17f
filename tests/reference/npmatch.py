"""NP-Match with lists for memories and loops over samples and images."""

import math

import numpy as np
import torch

from fullmatch.algorithms.neural_process import NeuralProcess
from fullmatch.algorithms.npmatch import NPMatch
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    apply_layers,
    array,
    cross_entropy,
    entropy,
    outputs,
    softmax,
)
from tests.reference.curriculum import Curriculum


def jensen_shannon(
    mean_a: Array, variance_a: Array, mean_b: Array, variance_b: Array, skew: float
) -> float:
    total = 0.0
    for m, v, n, w in zip(mean_a, variance_a, mean_b, variance_b, strict=True):
        variance = 1 / ((1 - skew) / v + skew / w)
        mean = variance * ((1 - skew) * m / v + skew * n / w)
        total += ((1 - skew) * v + skew * w) / variance - 1
        total += math.log(variance) - (1 - skew) * math.log(v) - skew * math.log(w)
        total += ((1 - skew) * (mean - m) ** 2 + skew * (mean - n) ** 2) / variance
    return total / 2


class Reference:
    def __init__(self, spec: NPMatch, process: NeuralProcess, images: int, classes: int) -> None:
        self.spec, self.process, self.classes = spec, process, classes
        self.latent = [array(process.latent_bank.rows[0].clone())]
        self.path = [array(process.deterministic_bank.rows[0].clone())]
        self.curriculum = Curriculum(images, spec.threshold, spec.uncertainty)

    def encoded(self, path: torch.nn.Module, features: Array, label: int) -> Array:
        return apply_layers(path, np.concatenate([features, np.eye(self.classes)[label]]))

    def gaussian(self, row: Array) -> tuple[Array, Array]:
        return (
            apply_layers(self.process.mean, row),
            0.1 + 0.9 * np.log1p(np.exp(apply_layers(self.process.scale, row))),
        )

    def decoded(
        self, gaussian: tuple[Array, Array], features: Array, path: Array, draws: Array
    ) -> Array:
        """Logits (S, B, C)."""
        points = [gaussian[0] + gaussian[1] * draw for draw in draws]
        return np.array([[self.decode(point, row, path) for row in features] for point in points])

    def decode(self, point: Array, features: Array, path: Array) -> Array:
        joined = np.concatenate([point, features, path])
        return apply_layers(self.process.classifier, apply_layers(self.process.decoder, joined))

    def loss(self, network: Network, batch: Batch, seed: int) -> float:
        """The seed repeats the random numbers of the step."""
        spec, process = self.spec, self.process
        labeled, weak, strong = (
            features for _, features in outputs(network, [batch.labeled[0], *batch.unlabeled])
        )
        torch.manual_seed(seed)
        draws = array(torch.randn(3, *process.draws.shape))
        memory = self.gaussian(np.mean(self.latent, axis=0))
        samples = self.decoded(memory, weak, np.mean(self.path, axis=0), draws[0])
        probs = [np.mean([softmax(row) for row in samples[:, i]], axis=0) for i in range(len(weak))]
        entropies = [entropy(row) for row in probs]
        aligned = [row / np.mean(probs, axis=0) for row in probs]
        aligned = [row / row.sum() for row in aligned]
        chosen = self.curriculum.select(aligned, batch.unlabeled_index.tolist(), entropies)
        labels = batch.labels.tolist()
        guesses = [int(row.argmax()) for row in aligned]
        known = [self.encoded(process.latent_path, *p) for p in zip(labeled, labels, strict=True)]
        path = [
            self.encoded(process.deterministic_path, *p) for p in zip(labeled, labels, strict=True)
        ]
        guessed = [
            self.encoded(process.latent_path, strong[i], guesses[i])
            for i in range(len(strong))
            if chosen[i]
        ]
        context = self.gaussian(np.mean(known, axis=0))
        target = self.gaussian(np.mean(guessed or known, axis=0))
        first = self.decoded(context, labeled, np.mean(path, axis=0), draws[1])
        second = self.decoded(target, strong, np.mean(path, axis=0), draws[2])
        self.latent = (self.latent + known + guessed)[-spec.memory :]
        self.path = (self.path + path)[-spec.memory :]
        total = np.mean(
            [
                cross_entropy(row, y)
                for sample in first
                for row, y in zip(sample, labels, strict=True)
            ]
        )
        used = [i for i in range(len(strong)) if chosen[i]]
        if used:
            total += np.mean([cross_entropy(s[i], guesses[i]) for s in second for i in used])
            sure = np.mean([entropy(mean_softmax(first[:, i])) for i in range(len(labels))])
            unsure = np.mean([entropy(mean_softmax(second[:, i])) for i in used])
            total += spec.divergence * jensen_shannon(
                context[0],
                context[1] ** 2,
                target[0],
                target[1] ** 2,
                float(sure / (sure + unsure)),
            )
        return float(total)


def mean_softmax(rows: Array) -> Array:
    return np.mean([softmax(row) for row in rows], axis=0)
