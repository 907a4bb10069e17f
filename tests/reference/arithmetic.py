"""Row-wise arithmetic in float64 for the references."""

import copy
import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fullmatch.core import Network

Array = NDArray[np.float64]


def array(values: Tensor) -> Array:
    return values.detach().double().numpy()


def outputs(network: Network, views: Sequence[Tensor]) -> list[tuple[Array, Array]]:
    """Logits and features of each view in one joint pass of a copy of the network."""
    network = copy.deepcopy(network)
    with torch.no_grad():
        logits, features = network(torch.cat(list(views)))
    parts, start = [], 0
    for view in views:
        rows = slice(start, start + len(view))
        parts.append((array(logits[rows]), array(features[rows])))
        start += len(view)
    return parts


def softmax(row: Array) -> Array:
    powers = np.exp(row - row.max())
    return powers / powers.sum()


def log_softmax(row: Array) -> Array:
    return row - row.max() - math.log(np.exp(row - row.max()).sum())


def cross_entropy(logits: Array, target: int | Array) -> float:
    """Cross-entropy of one row."""
    log_p = log_softmax(logits)
    return float(-log_p[target] if isinstance(target, int) else -(target * log_p).sum())


def labeled_loss(logits: Array, labels: Tensor) -> float:
    rows = zip(logits, labels.tolist(), strict=True)
    return float(np.mean([cross_entropy(row, label) for row, label in rows]))


def cosine(a: Array, b: Array) -> float:
    return float(a @ b / math.sqrt(a @ a) / math.sqrt(b @ b))


def entropy(probs: Array) -> float:
    return float(-sum(p * math.log(p) for p in probs if p > 0))


def apply_layers(layers: nn.Module, row: Array) -> Array:
    """Apply linear layers and activations to one row."""
    for layer in [layers] if isinstance(layers, nn.Linear) else layers.children():
        if isinstance(layer, nn.Linear):
            row = array(layer.weight) @ row + array(layer.bias)
        elif isinstance(layer, nn.LeakyReLU):
            row = np.where(row > 0, row, layer.negative_slope * row)
        else:
            row = np.where(row > 0, row, 0.0)
    return row
