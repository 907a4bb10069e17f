"""predictions.safetensors: what the averaged model says about the test images; needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from fullmatch.files.reading import require_tensors

if TYPE_CHECKING:
    from PIL import Image

Numbers = NDArray[np.float64]
ROUNDING = 1e-3  # of probabilities, in half precision
BINS = 15  # of confidence, as in the expected calibration error


@dataclass(frozen=True)
class Predictions:
    """Class probabilities of images, and their labels."""

    probabilities: NDArray[np.floating[Any]]  # (N, C), as saved: it may be large
    labels: NDArray[np.int64]  # (N,), -1 where unknown

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        predicted: NDArray[np.int64] = self.probabilities.argmax(axis=1)
        return predicted

    @cached_property
    def confidence(self) -> Numbers:
        confidence: Numbers = self.probabilities.max(axis=1).astype(np.float64)
        return confidence

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        right: NDArray[np.bool_] = self.predicted == self.labels
        return right

    @property
    def wrong(self) -> NDArray[np.bool_]:
        wrong: NDArray[np.bool_] = ~self.right & (self.labels >= 0)
        return wrong

    def most_confident(self, count: int) -> list[int]:
        """Of each predicted class in turn, so that an easy class does not take every place."""
        order = np.argsort(-self.confidence, kind="stable")
        predicted = self.predicted[order]
        rank = [int((predicted[:at] == predicted[at]).sum()) for at in range(len(order))]
        return [int(i) for i in order[np.argsort(rank, kind="stable")][:count]]

    def least_confident(self, count: int) -> list[int]:
        return [int(i) for i in np.argsort(self.confidence, kind="stable")[:count]]

    def most_confident_mistakes(self, count: int) -> list[int]:
        wrong = np.flatnonzero(self.wrong)
        order = np.argsort(-self.confidence[wrong], kind="stable")
        return [int(i) for i in wrong[order][:count]]

    def reliability(self) -> list[tuple[float, float, int]]:
        """Mean confidence, accuracy and number of images of every bin that is not empty."""
        bins = np.minimum((self.confidence * BINS).astype(int), BINS - 1)
        members = (bins == number for number in range(BINS))
        return [
            (float(self.confidence[m].mean()), float(self.right[m].mean()), int(m.sum()))
            for m in members
            if m.any()
        ]


@dataclass(frozen=True)
class Album:
    """Pictures and their predictions; the caller says how to read a picture and its name."""

    image: Callable[[int], "Image.Image"]
    name: Callable[[int], str]  # its path inside the data folder, or its number
    predictions: Predictions


def read_predictions(path: Path) -> Predictions:
    """`ValueError` or `KeyError` says what is wrong with the file."""
    require_tensors(path)
    saved = load_file(path)
    probabilities, labels = saved["probabilities"], saved["labels"]
    if probabilities.ndim != 2 or labels.shape != probabilities.shape[:1]:
        raise ValueError("probabilities and labels do not fit each other")
    if not np.issubdtype(probabilities.dtype, np.floating) or not np.isfinite(probabilities).all():
        raise ValueError("probabilities are not finite numbers")
    if not ((probabilities >= 0) & (probabilities <= 1 + ROUNDING)).all():
        raise ValueError("probabilities are not between 0 and 1")
    if not np.issubdtype(labels.dtype, np.integer) or (labels >= probabilities.shape[1]).any():
        raise ValueError("labels are not classes")
    return Predictions(probabilities, labels.astype(np.int64))
