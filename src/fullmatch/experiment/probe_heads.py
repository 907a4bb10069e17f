"""Linear heads on embeddings, fitted in closed form or by a few iterations: no training steps.

- `logistic`: logistic regression on the labels only;
- `propagation`: labels spread over a graph of neighboring pictures, and a head learns the result;
- `clustering`: one center per class, moved to the unlabeled pictures around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Labels = NDArray[np.int64]

NEIGHBORS = 10
SHARPNESS = 3  # power of a similarity
SPREAD = 0.9  # share of a picture's label that comes from its neighbors
TEMPERATURE = 10.0  # of similarities to class centers
STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # inverse regularization that logistic regression tries


class HeadKind(StrEnum):
    """How a head is fitted."""

    LOGISTIC = "logistic"
    PROPAGATION = "propagation"
    CLUSTERING = "clustering"


@dataclass(frozen=True)
class LinearHead:
    """Logits are rows @ weight.T + bias."""

    weight: Array  # (C, D)
    bias: Array  # (C,)

    def logits(self, rows: Array) -> Array:
        return rows @ self.weight.T + self.bias

    def probabilities(self, rows: Array) -> Array:
        return softmax(self.logits(rows))


def softmax(logits: NDArray[np.floating[Any]]) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True), np.float32)


def fit_logistic(rows: Array, labels: Labels, classes: int, strength: float) -> LinearHead:
    """Logistic regression; a class without a label gets the lowest logits."""
    from sklearn.linear_model import LogisticRegression

    present = np.unique(labels)
    model = LogisticRegression(C=strength, max_iter=1000).fit(rows, labels)
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:  # two classes share one row
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    full_weight = np.zeros((classes, rows.shape[1]), np.float32)
    full_bias = np.full(classes, bias.min() - 10, np.float32)
    full_weight[present], full_bias[present] = weight, bias
    return LinearHead(full_weight, full_bias)


def fit_soft(rows: Array, targets: Array, weights: Array, strength: float) -> LinearHead:
    """Logistic regression on probabilities instead of labels, each row with its weight."""
    from scipy.optimize import minimize

    width = rows.shape[1]
    classes, total = targets.shape[1], float(weights.sum())
    scaled = (targets * weights[:, None] / total).astype(np.float64)
    wide, share = rows.astype(np.float64), weights[:, None] / total

    def cost(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight = flat[: classes * width].reshape(classes, width)
        logits = wide @ weight.T + flat[classes * width :]
        logits -= logits.max(axis=1, keepdims=True)
        log_total = np.log(np.exp(logits).sum(axis=1, keepdims=True))
        penalty = 0.5 / (strength * total)
        value = -(scaled * (logits - log_total)).sum() + penalty * (weight**2).sum()
        error = np.exp(logits - log_total) * share - scaled
        gradient = error.T @ wide + 2 * penalty * weight
        return float(value), np.concatenate([gradient.ravel(), error.sum(axis=0)])

    start = np.zeros(classes * (width + 1))
    fit = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    weight = fit[: classes * width].reshape(classes, width).astype(np.float32)
    return LinearHead(weight, fit[classes * width :].astype(np.float32))


def balance(probabilities: Array, prior: Array, iterations: int = 50) -> Array:
    """Rescale predictions until their mean is the class prior (Sinkhorn's algorithm)."""
    result = probabilities / probabilities.sum(axis=1, keepdims=True)
    for _ in range(iterations):
        result = result * (prior * len(result) / np.maximum(result.sum(axis=0), 1e-9))
        result = result / result.sum(axis=1, keepdims=True)
    return np.asarray(result, np.float32)


class NeighborGraph:
    """Similarities of pictures to their nearest neighbors, normalized for label propagation."""

    def __init__(self, rows: Array) -> None:
        from scipy import sparse
        from sklearn.neighbors import NearestNeighbors

        count = min(NEIGHBORS, len(rows) - 1)
        search = NearestNeighbors(n_neighbors=count + 1, algorithm="brute", metric="cosine")
        distances, neighbors = search.fit(rows).kneighbors(rows)
        similarities = np.clip(1 - distances[:, 1:], 0, None) ** SHARPNESS
        index = np.repeat(np.arange(len(rows)), count)
        values = (similarities.ravel(), (index, neighbors[:, 1:].ravel()))
        graph = sparse.csr_matrix(values, shape=(len(rows), len(rows)))
        graph = graph + graph.T
        scale = sparse.diags(1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-9)))
        self.graph = scale @ graph @ scale

    def propagate(
        self, labeled: Labels, labels: Labels, prior: Array, iterations: int = 40
    ) -> Array:
        """(N, C) probabilities of all pictures, from the labels of some."""
        classes = len(prior)
        start = np.zeros((self.graph.shape[0], classes), np.float32)
        start[labeled, labels] = 1 / np.bincount(labels, minlength=classes)[labels]
        spread = start
        for _ in range(iterations):
            spread = SPREAD * (self.graph @ spread) + (1 - SPREAD) * start
        spread = spread / np.maximum(spread.sum(axis=0), 1e-12)
        return balance(spread + 1e-9, prior)


def fit_clusters(
    rows: Array, labeled: Labels, labels: Labels, unlabeled: Labels, prior: Array
) -> LinearHead:
    """Class centers of labeled pictures, moved to the unlabeled pictures assigned to them."""
    one_hot = np.eye(len(prior), dtype=np.float32)[labels]
    centers = unit_rows(one_hot.T @ rows[labeled])
    for _ in range(12):
        assigned = balance(softmax(TEMPERATURE * rows[unlabeled] @ centers.T), prior)
        sums = assigned.T @ rows[unlabeled] + one_hot.T @ rows[labeled]
        centers = unit_rows((centers + unit_rows(sums)) / 2)
    return LinearHead(TEMPERATURE * centers, np.zeros(len(prior), np.float32))


def unit_rows(rows: NDArray[np.floating[Any]]) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(length, 1e-9), np.float32)


def stratified_folds(
    labels: Labels, *, folds: int, repeats: int, seed: int
) -> list[tuple[Labels, Labels]]:
    """(training, held out) positions with classes spread evenly; none if a class has one label."""
    from sklearn.model_selection import StratifiedKFold

    count = min(folds, int(np.bincount(labels)[np.unique(labels)].min()))
    if count < 2:
        return []
    pairs: list[tuple[Labels, Labels]] = []
    for repeat in range(repeats):
        splitter = StratifiedKFold(count, shuffle=True, random_state=seed + repeat)
        pairs += list(splitter.split(np.zeros(len(labels)), labels))
    return pairs


def choose_strength(rows: Array, labels: Labels, classes: int, seed: int) -> float:
    """The regularization of logistic regression by cross-validation: accuracy, then likelihood."""
    pairs = stratified_folds(labels, folds=5, repeats=2, seed=seed)
    if not pairs:
        return 10.0
    scores: list[tuple[int, float]] = []
    for strength in STRENGTHS:
        hits, likelihood = 0, 0.0
        for training, held_out in pairs:
            head = fit_logistic(rows[training], labels[training], classes, strength)
            probabilities = head.probabilities(rows[held_out])
            truth = labels[held_out]
            hits += int((probabilities.argmax(axis=1) == truth).sum())
            picked = probabilities[np.arange(len(truth)), truth]
            likelihood += float(np.log(np.maximum(picked, 1e-9)).sum())
        scores.append((hits, likelihood))
    return STRENGTHS[max(range(len(STRENGTHS)), key=lambda at: scores[at])]


def columns(dimensions: Sequence[int], part: int) -> slice:
    """Where one part of an embedding is."""
    start = sum(dimensions[:part])
    return slice(start, start + dimensions[part])
