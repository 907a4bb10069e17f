"""FullMatch's losses as simple loops in float64, with gradients derived by hand."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def log_softmax(row: Array) -> Array:
    shifted = row - row.max()
    return shifted - math.log(sum(math.exp(value) for value in shifted))


def log1m(log_p: Array, c: int) -> float:
    """log of the total probability of the classes other than c."""
    others = np.delete(log_p, c)
    return float(others.max() + math.log(sum(math.exp(value) for value in others - others.max())))


def log1m_gradient(log_p: Array, c: int) -> Array:
    """Gradient with respect to the logits of the row."""
    gradient = np.exp(np.delete(log_p, c) + log_p[c] - log1m(log_p, c))
    return np.insert(gradient, c, -math.exp(log_p[c]))


def usable(*rows: Array) -> bool:
    return all(bool(np.isfinite(row).all()) for row in rows)


def adaptive_k(strong: Array, weak: Array) -> int:
    num_classes = strong.shape[1]
    for k in range(2, num_classes):
        if all(_within(k, s, w) for s, w in zip(strong, weak, strict=True)):
            return k
    return num_classes


def _within(k: int, strong: Array, weak: Array) -> bool:
    """Whether the weak label is in the strong view's top k; ties count against it."""
    if not usable(strong, weak):
        return False
    label = int(weak.argmax())
    ahead = [c for c in range(len(strong)) if c != label and strong[c] >= strong[label]]
    return len(ahead) < k


def negatives(weak: Array, k: int) -> list[int]:
    if not usable(weak):
        return []
    return [c for c in range(len(weak)) if sum(value > weak[c] for value in weak) >= k]


def adaptive_negative(
    strong: Array, weak: Array, k: int, weight: Array | None = None, ceiling: float | None = None
) -> tuple[float, Array]:
    """The loss and its gradient with respect to the strong logits."""
    rows = len(strong)
    value, gradient = 0.0, np.zeros_like(strong)
    for i in range(rows):
        if not usable(strong[i], weak[i]):
            continue
        log_p = log_softmax(strong[i])
        factor = 1.0 if weight is None else float(weight[i])
        for c in negatives(weak[i], k):
            if _kept(log_p[c], ceiling):
                value -= factor * log1m(log_p, c) / rows
                gradient[i] -= factor * log1m_gradient(log_p, c) / rows
    return value, gradient


def entropy_meaning(
    strong: Array,
    weak: Array,
    selected: Array,
    k: int | None = None,
    form: str = "bce",
    reduction: str = "active",
    ceiling: float | None = None,
) -> tuple[float, Array]:
    """The loss and its gradient with respect to the strong logits."""
    rows, num_classes = strong.shape
    value, gradient, active = 0.0, np.zeros_like(strong), 0.0
    for i in range(rows):
        if not usable(strong[i], weak[i]):
            continue
        log_p = log_softmax(strong[i])
        p = np.exp(log_p)
        excluded = {int(weak[i].argmax()), *(negatives(weak[i], k) if k is not None else [])}
        others = [c for c in range(num_classes) if c not in excluded]
        y = sum(p[c] for c in others) / len(others)
        y_gradient = -p * y
        for c in others:
            y_gradient[c] += p[c] / len(others)
        for c in others:
            if not _kept(log_p[c], ceiling):
                continue
            log_p_gradient = -p.copy()
            log_p_gradient[c] += 1
            active += float(selected[i])
            value -= selected[i] * y * log_p[c]
            gradient[i] -= selected[i] * (y_gradient * log_p[c] + y * log_p_gradient)
            if form == "bce":
                other = log1m(log_p, c)
                value -= selected[i] * (1 - y) * other
                gradient[i] -= selected[i] * (1 - y) * log1m_gradient(log_p, c)
                gradient[i] += selected[i] * y_gradient * other
    divisor = rows * num_classes if reduction == "paper" else active
    return (value / divisor, gradient / divisor) if divisor else (0.0, np.zeros_like(strong))


def _kept(log_p: float, ceiling: float | None) -> bool:
    return ceiling is None or math.exp(log_p) <= ceiling


def numeric_gradient(loss: Callable[[Array], float], point: Array, step: float = 1e-6) -> Array:
    """Central differences, to check the gradients above."""
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        ahead, behind = point.copy(), point.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (loss(ahead) - loss(behind)) / (2 * step)
    return gradient
