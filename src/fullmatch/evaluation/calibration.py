"""Confidences that mean what they say: one temperature, fitted on held-out labels."""

from torch import Tensor

from fullmatch.evaluation.scores import compute_scores
from fullmatch.storage.result import Calibration

LEAST = 20  # held-out labels, below which a fitted temperature would be noise
SHARPNESS = (0.05, 4.0)  # limits of the inverse temperature
TINY = 1e-12  # a probability of 0 has no logarithm


def apply_temperature(probs: Tensor, temperature: float) -> Tensor:
    """(B, C) probabilities, softer above temperature 1 and sharper below; the order stays."""
    return (probs.clamp(min=TINY).log() / temperature).softmax(dim=1)


def fit_temperature(probs: Tensor, labels: Tensor) -> float:
    """The temperature under which labels that training never saw are likeliest."""
    from scipy.optimize import minimize_scalar  # slow to import, and rarely needed

    if probs.ndim != 2 or labels.shape != probs.shape[:1] or not len(labels):
        raise ValueError(
            f"probs, labels: got shapes {tuple(probs.shape)} and {tuple(labels.shape)}, "
            "expected (N, C) and (N,) with N of 1 or more"
        )
    log_probs, labels = probs.double().cpu().clamp(min=TINY).log(), labels.cpu()

    def cost(sharpness: float) -> float:
        loss = -(log_probs * sharpness).log_softmax(dim=1).gather(1, labels[:, None]).sum()
        # A prior with the weight of about one label keeps it near 1: a few labels that are all
        # right would ask for infinite confidence.
        return loss.item() + (sharpness - 1) ** 2

    fit = minimize_scalar(cost, bounds=SHARPNESS, method="bounded", options={"xatol": 1e-6})
    return 1 / float(fit.x)


def calibrate(probs: Tensor, labels: Tensor) -> Calibration:
    """The fitted temperature, or none and the reason where there are too few labels or no gain."""
    images = len(labels)
    if images < LEAST:
        reason = f"{images} held-out labels are too few, at least {LEAST} are needed"
        return Calibration(temperature=None, images=images, note=reason)
    temperature = fit_temperature(probs, labels)
    before = compute_scores(probs, labels).ece
    after = compute_scores(apply_temperature(probs.double(), temperature), labels).ece
    note = f"calibrated on {images} held-out labels"
    if after > before:
        temperature, after = 1.0, before
        note = "left unchanged: no temperature improved them"
    return Calibration(
        temperature=temperature, images=images, ece_before=before, ece_after=after, note=note
    )
