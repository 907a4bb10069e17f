"""SemCo's step, image by image, with groups as lists of classes."""

import numpy as np

from fullmatch.algorithms.semco import SemCo
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import (
    Array,
    apply_layers,
    cosine,
    cross_entropy,
    outputs,
    softmax,
)


def guess(embedding: Array, classes: Array, groups: list[list[int]]) -> tuple[Array, int, float]:
    """Mean embedding, most similar class and similarity of the nearest group."""
    alike = np.array([cosine(embedding, row) for row in classes])
    scores = [float(np.mean(alike[group])) for group in groups]
    nearest = groups[int(np.argmax(scores))]
    shares = softmax(alike)[nearest]
    shares = shares / shares.sum()
    mean = sum(share * classes[c] for share, c in zip(shares, nearest, strict=True))
    return mean, nearest[int(np.argmax(shares))], max(scores)


def loss(
    network: Network, head: object, batch: Batch, spec: SemCo, classes: Array, group: list[int]
) -> float:
    groups = [[c for c, g in enumerate(group) if g == number] for number in sorted(set(group))]
    labeled, weak, strong = outputs(network, [batch.labeled[0], *batch.unlabeled])
    total = 0.0
    for logits, features, label in zip(*labeled, batch.labels.tolist(), strict=True):
        total += cross_entropy(logits, label) / len(batch.labels)
        away = 1 - cosine(apply_layers(head, features), classes[label])  # type: ignore[arg-type]
        total += 3 * away / len(batch.labels)
    images = len(weak[0])
    for i in range(images):
        probs = softmax(weak[0][i])
        mean, second, score = guess(apply_layers(head, weak[1][i]), classes, groups)  # type: ignore[arg-type]
        embedding = apply_layers(head, strong[1][i])  # type: ignore[arg-type]
        if probs.max() >= spec.threshold:
            first = int(np.argmax(probs))
            total += cross_entropy(strong[0][i], first) / images
            total += 3 * (1 - cosine(embedding, classes[first])) / images
        if score >= spec.group_threshold:
            total += cross_entropy(strong[0][i], second) / images
            total += 3 * (1 - cosine(embedding, mean)) / images
    return total
