"""Row-wise arithmetic with Python floats for the references."""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fullmatch.core import Network

Row = list[float]


def softmax(logits: Row, temperature: float = 1.0) -> Row:
    largest = max(logits)
    powers = [math.exp((value - largest) / temperature) for value in logits]
    return [power / sum(powers) for power in powers]


def cross_entropy(target: Row, probs: Row) -> float:
    return -sum(t * math.log(p) for t, p in zip(target, probs, strict=True) if t > 0)


def one_hot(label: int, num_classes: int) -> Row:
    return [float(c == label) for c in range(num_classes)]


def best(row: Row) -> int:
    return row.index(max(row))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def column_means(rows: list[Row]) -> Row:
    return [mean(column) for column in zip(*rows, strict=True)]


def normalize(row: Row) -> Row:
    return [value / sum(row) for value in row]


def moving_average(average: Row, new: Row, momentum: float) -> Row:
    return [momentum * a + (1 - momentum) * b for a, b in zip(average, new, strict=True)]


def logits_of(network: Network, *views: Tensor) -> list[list[Row]]:
    """The logits of each view, in one training pass of a copy of the network."""
    output = copy.deepcopy(network)(torch.cat(views)).logits.tolist()
    parts, start = [], 0
    for view in views:
        parts.append(output[start : start + len(view)])
        start += len(view)
    return parts


def supervised(logits: list[Row], labels: Tensor) -> float:
    return mean(
        [-math.log(softmax(row)[y]) for row, y in zip(logits, labels.tolist(), strict=True)]
    )
