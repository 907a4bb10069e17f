"""Confidences that mean what they say: one temperature, fitted on labels held out of training."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from fullmatch.evaluation.scores import scores

LEAST = 20  # held-out labels, below which a fitted temperature would be noise
SHARPNESS = (0.05, 4.0)  # limits of the inverse temperature
TINY = 1e-12  # a probability of 0 has no logarithm


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it did to the held-out pictures it was fitted on."""

    temperature: float
    images: int
    ece_before: float | None  # expected calibration error; None where nothing was fitted
    ece_after: float | None
    note: str

    def as_result(self) -> dict[str, Any]:
        """What goes into a run's result; no temperature where none was fitted."""
        details = asdict(self)
        temperature = details.pop("temperature")
        fitted = self.ece_after is not None
        return {"temperature": temperature if fitted else None, "calibration": details}


def calibrated(probs: Tensor, temperature: float) -> Tensor:
    """(B, C) probabilities, softer above temperature 1 and sharper below; the order stays."""
    return (probs.clamp(min=TINY).log() / temperature).softmax(dim=1)


def fit_temperature(probs: Tensor, labels: Tensor) -> float:
    """The temperature under which labels that training never saw are likeliest."""
    if probs.ndim != 2 or labels.shape != probs.shape[:1] or not len(labels):
        raise ValueError(
            f"probs, labels: given shapes {tuple(probs.shape)} and {tuple(labels.shape)}, "
            "expected (N, C) and (N,) with N of 1 or more"
        )
    log_probs, labels = probs.double().cpu().clamp(min=TINY).log(), labels.cpu()

    def cost(sharpness: float) -> float:
        surprise = -(log_probs * sharpness).log_softmax(dim=1).gather(1, labels[:, None]).sum()
        # The weight of about one label holds it near 1, since a few labels, all of them right,
        # would ask for endless certainty.
        return surprise.item() + (sharpness - 1) ** 2

    return 1 / lowest(cost, *SHARPNESS)


def calibration(probs: Tensor, labels: Tensor) -> Calibration:
    """The fitted temperature, or 1 and the reason where few labels or no gain speak against it."""
    count = len(labels)
    if count < LEAST:
        reason = f"{count} held-out labels are too few, {LEAST} would do"
        return Calibration(1.0, count, None, None, reason)
    temperature = fit_temperature(probs, labels)
    before = scores(probs, labels).ece
    after = scores(calibrated(probs.double(), temperature), labels).ece
    if after > before:
        return Calibration(
            1.0, count, before, before, "left as they were: no temperature made them truer"
        )
    note = f"calibrated on {count} held-out labels"
    return Calibration(temperature, count, before, after, note)


def lowest(cost: Callable[[float], float], low: float, high: float) -> float:
    """Where a convex function is lowest, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = cost(left), cost(right)
    while high - low > 1e-6:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = cost(right)
    return (low + high) / 2
