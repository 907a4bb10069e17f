"""Find labels that look wrong, by features.

A label looks wrong if a classifier that has not seen it and the most similar pictures agree on
another class. Logistic regression gives probabilities while labels are held out in turn; they are
calibrated on the labels, some of which may be wrong. How likely a label is wrong then follows from
Bayes' rule: where classes are hard to tell apart, more evidence is needed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fullmatch.data.quality.photo_features import Floats, find_neighbors

Classes = NDArray[np.int64]
Probabilities = NDArray[np.float64]

NOISE = 0.05  # share of wrong labels that is assumed beforehand
LIKELY_WRONG = 0.35  # probability from which a label is reported
MIN_LABELS = 4  # per class; smaller classes are left out
FOLDS = 5
REPEATS, FEW = 3, 300  # with fewer labels than this, folds are drawn several times
STRENGTHS = (0.3, 3.0, 30.0)  # inverse regularization that is tried
MOST_FITTED = 2000  # labels that one classifier is fitted on, or 20 per class if that is more
MOST_NEIGHBORS = 10
SHARPNESS = 3  # power of a similarity, by which neighbors count


class SuspectLabel(NamedTuple):
    """A label that looks wrong."""

    at: int  # row
    suggested: int  # class that the picture looks like
    probability: float  # of that class, by a classifier that has not seen the label


def find_suspect_labels(features: Floats, labels: Classes, seed: int = 0) -> list[SuspectLabel]:
    """Labels that look wrong, the most suspicious first; labels are -1 where unknown.

    Features (N, D) have rows of length 1.
    """
    rows = np.flatnonzero(select_usable(labels))
    classes, known = np.unique(labels[rows], return_inverse=True)
    if len(classes) < 2:
        return []
    known = known.astype(np.int64)
    probabilities = predict_held_out(features[rows], known, seed)
    own = probabilities[np.arange(len(rows)), known]  # of the label that each picture has
    others = probabilities.copy()
    others[np.arange(len(rows)), known] = -1
    suggested, other = others.argmax(axis=1), others.max(axis=1)
    noise = NOISE / (len(classes) - 1)
    wrong = noise * other / (noise * other + (1 - NOISE) * own)
    suspect = (wrong >= LIKELY_WRONG) & (suggested == ask_neighbors(features[rows], known))
    order = sorted(np.flatnonzero(suspect), key=lambda at: -wrong[at])
    return [
        SuspectLabel(int(rows[at]), int(classes[suggested[at]]), float(other[at])) for at in order
    ]


def select_usable(labels: Classes) -> NDArray[np.bool_]:
    """Which labels are of a class that has enough of them."""
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    return np.isin(labels, classes[counts >= MIN_LABELS])


def predict_held_out(rows: Floats, labels: Classes, seed: int) -> Probabilities:
    """(N, C) calibrated probabilities, each from classifiers that have not seen the label."""
    from scipy.optimize import minimize_scalar

    repeats = REPEATS if len(rows) < FEW else 1
    best, chosen = np.inf, np.empty(0)
    for strength in STRENGTHS:
        logits = [hold_out_logits(rows, labels, strength, seed + at) for at in range(repeats)]

        def predict(log_scale: float, logits: list[Probabilities] = logits) -> Probabilities:
            scaled = [softmax(np.exp(log_scale) * each) for each in logits]
            return np.asarray(np.mean(scaled, axis=0))

        fit = minimize_scalar(
            lambda log_scale, predict=predict: robust_loss(predict(log_scale), labels),
            bounds=(-2, 3),
            method="bounded",
        )
        if fit.fun < best:
            best, chosen = fit.fun, predict(fit.x)
    return chosen


def hold_out_logits(rows: Floats, labels: Classes, strength: float, seed: int) -> Probabilities:
    """(N, C) logits of labels that were held out in turn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(labels)
    logits = np.zeros((len(rows), len(counts)))
    folds = StratifiedKFold(min(FOLDS, int(counts.min())), shuffle=True, random_state=seed)
    order = np.random.default_rng(seed)
    for training, held_out in folds.split(rows, labels):
        fitted = order.permutation(training)[: max(MOST_FITTED, 20 * len(counts))]
        fitted = np.union1d(fitted, first_of_each(labels, training))
        model = LogisticRegression(C=strength, max_iter=300).fit(rows[fitted], labels[fitted])
        scores = model.decision_function(rows[held_out])
        # Two classes share one score.
        logits[held_out] = scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2
    return logits


def first_of_each(labels: Classes, rows: Classes) -> Classes:
    """One row of each class, so that no class is missing."""
    return rows[np.unique(labels[rows], return_index=True)[1]]


def softmax(logits: Probabilities) -> Probabilities:
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def robust_loss(probabilities: Probabilities, labels: Classes) -> float:
    """Cross-entropy, if some labels are wrong: these do not make all predictions uncertain."""
    likelihood = probabilities[np.arange(len(labels)), labels]
    noise = NOISE / (probabilities.shape[1] - 1)
    return float(-np.log((1 - NOISE) * likelihood + noise * (1 - likelihood)).mean())


def ask_neighbors(rows: Floats, labels: Classes) -> Classes:
    """(N,) the class that most similar pictures have, not counting the picture itself."""
    counts = np.bincount(labels)
    neighbors = int(np.clip(counts.min() // 2, 3, MOST_NEIGHBORS))
    similarities, index = find_neighbors(rows, neighbors)
    weights = similarities.clip(min=0) ** SHARPNESS + 1e-6
    votes = np.zeros((len(rows), len(counts)))
    for neighbor in range(index.shape[1]):
        votes[np.arange(len(rows)), labels[index[:, neighbor]]] += weights[:, neighbor]
    return np.asarray(votes.argmax(axis=1))
