"""DoubleMatch's step, image by image."""

import numpy as np
from torch import nn

from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    apply_layers,
    cosine,
    cross_entropy,
    labeled_loss,
    outputs,
    softmax,
)


def loss(
    network: Network, head: nn.Linear, batch: Batch, threshold: float, coefficient: float
) -> float:
    labeled, weak, strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
    total = 0.0
    for i in range(len(weak[0])):
        probs = softmax(weak[0][i])
        if probs.max() >= threshold:
            total += cross_entropy(strong[0][i], int(np.argmax(probs)))
        total += coefficient * (1 - cosine(apply_layers(head, strong[1][i]), weak[1][i]))
    return labeled_loss(labeled[0], batch.labels) + total / len(weak[0])
