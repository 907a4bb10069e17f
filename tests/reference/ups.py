"""UPS: its online step sample by sample, and the choice of a round image by image."""

import copy
import math

import numpy as np
import torch

from fullmatch.algorithms.ups import UPS
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    array,
    cross_entropy,
    entropy,
    labeled_loss,
    outputs,
    softmax,
)
from tests.reference.curriculum import Curriculum


def unlikely(samples: Array, threshold: float, spread: float, temperature: float) -> set[int]:
    """Negative classes of one image with logits (S, C)."""
    probs = np.array([softmax(row / temperature) for row in samples])
    mean, deviation = probs.mean(axis=0), probs.std(axis=0, ddof=1)
    return {
        c
        for c in range(len(mean))
        if mean[c] < threshold and deviation[c] < spread and c != mean.argmax()
    }


def negative_learning(probs: Array, classes: set[int]) -> float:
    return -sum(math.log(1 - probs[c]) for c in classes) / len(classes)


class Reference:
    def __init__(self, spec: UPS, images: int) -> None:
        self.spec = spec
        self.curriculum = Curriculum(images, spec.threshold, spec.uncertainty)

    def loss(self, network: Network, batch: Batch, seed: int) -> float:
        """The seed repeats the dropout of the step."""
        spec, network = self.spec, copy.deepcopy(network)
        labeled, weak, strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
        torch.manual_seed(seed)

        def sampled(features: Array, samples: int) -> Array:
            dropped = (torch.rand(samples, *features.shape) >= spec.dropout) / (1 - spec.dropout)
            rows = torch.tensor(features).float() * dropped
            with torch.no_grad():
                return array(torch.stack([network.classify(sample) for sample in rows]))

        first = sampled(labeled[1], 1)[0]
        near, far = sampled(weak[1], spec.samples), sampled(strong[1], spec.samples)
        images = near.shape[1]
        probs = [np.mean([softmax(row) for row in near[:, i]], axis=0) for i in range(images)]
        entropies = [entropy(row) for row in probs]
        chosen = self.curriculum.select(probs, batch.unlabeled_index.tolist(), entropies)
        total, negatives = 0.0, []
        for i in range(images):
            if chosen[i]:
                label = int(probs[i].argmax())
                total += float(np.mean([cross_entropy(row, label) for row in far[:, i]])) / images
            else:
                classes = unlikely(
                    near[:, i], spec.negative_threshold, spec.negative_spread, temperature=2.0
                )
                if classes:
                    mean = np.mean([softmax(row) for row in far[:, i]], axis=0)
                    negatives.append(negative_learning(mean, classes))
        total += spec.negatives * float(np.mean(negatives)) if negatives else 0.0
        return labeled_loss(first, batch.labels) + total
