"""CRMatch's step, image by image."""

import copy

import numpy as np
import torch

from fullmatch.algorithms.crmatch import CRMatchLoss
from fullmatch.core import Batch, Network
from tests.reference.arithmetic import apply_layers, array, cosine, cross_entropy, softmax


def loss(network: Network, algorithm: CRMatchLoss, batch: Batch, threshold: float) -> float:
    network = copy.deepcopy(network)
    weak, strong = batch.unlabeled
    some = weak[: len(batch.labels)]
    turns = [torch.rot90(some, turn, (2, 3)) for turn in range(4)]
    with torch.no_grad():
        maps = network.feature_map(torch.cat([batch.labeled[0], weak, strong, *turns]))
        logits = array(network.classify(network.pool(maps)))
        pooled = array(network.pool(maps))
    flat = array(maps.flatten(1))
    first, images = len(batch.labels), len(weak)
    total = np.mean([cross_entropy(logits[i], int(batch.labels[i])) for i in range(first)])
    for i in range(images):
        probs = softmax(logits[first + i])
        if probs.max() < threshold:
            continue
        total += cross_entropy(logits[first + images + i], int(np.argmax(probs))) / images
        near = apply_layers(algorithm.distance, flat[first + i])
        far = apply_layers(algorithm.distance, flat[first + images + i])
        total += max(0.0, cosine(near, far)) / images
    for turn in range(4):
        for i in range(len(some)):
            row = pooled[first + 2 * images + turn * len(some) + i]
            total += cross_entropy(apply_layers(algorithm.rotation, row), turn) / (4 * len(some))
    return float(total)
