"""How well a model tells images of known classes from those of classes that it never had labels of.

Accuracy is measured on known classes only, as everywhere else.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fullmatch.storage.result import OpenSetScores


class OpenSetPredictions(NamedTuple):
    """What a model says about images of which some may be of unknown classes."""

    known: Tensor  # (N,) score, higher for images that look known
    label: Tensor | None = None  # (N,) a class, or C for unknown; None: it never says unknown


def by_confidence(probs: Tensor) -> OpenSetPredictions:
    """From class probabilities (N, C): the largest one is the score."""
    return OpenSetPredictions(probs.double().amax(dim=1).cpu())


def by_open_set_head(probs: Tensor) -> OpenSetPredictions:
    """From probabilities (N, C + 1) whose last column is that of an unknown class."""
    probs = probs.double().cpu()
    return OpenSetPredictions(1 - probs[:, -1], probs.argmax(dim=1))


def compute_open_set_scores(
    known: OpenSetPredictions, labels: Tensor, unknown: OpenSetPredictions, num_classes: int
) -> OpenSetScores:
    """Scores of predictions for images of known classes, with their labels, and of unknown ones."""
    from sklearn.metrics import roc_auc_score  # takes a second, so only when needed

    is_known = torch.cat([torch.ones(len(known.known)), torch.zeros(len(unknown.known))])
    scores = torch.cat([known.known, unknown.known])
    auroc = float(roc_auc_score(is_known.numpy(), scores.numpy()))
    images = len(unknown.known)
    if known.label is None or unknown.label is None:
        return OpenSetScores(images=images, auroc=auroc)
    labels = labels.cpu()
    hits = (known.label == labels).double()
    count = torch.bincount(labels, minlength=num_classes)
    accuracies = torch.bincount(labels, weights=hits, minlength=num_classes)[count > 0]
    accuracies = accuracies / count[count > 0]
    unknown_accuracy = (unknown.label == num_classes).double().mean()
    balanced = torch.cat([accuracies, unknown_accuracy[None]]).mean()
    return OpenSetScores(
        images=images,
        auroc=auroc,
        balanced_accuracy=balanced.item(),
        unknown_accuracy=unknown_accuracy.item(),
    )
