"""UPS (Rizve et al., ICLR 2021), the paper's rounds: which labels a trained network hands on.

After each round a network labels every unlabeled image several times, dropout on; the next round
trains a new network on what is chosen here. `logits` is (S, N, C): S samples of N images.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Choice(NamedTuple):
    """What the next round may learn of each unlabeled image."""

    label: Tensor  # (N,) int64, the most likely class
    positive: Tensor  # (N,) bool, whether that label is to be learned
    negative: Tensor  # (N, C) bool, classes the image is said not to be; none where positive


def choose(
    logits: Tensor,
    *,
    balanced: bool,  # the same number of every class, as in all but the last rounds
    threshold: float = 0.7,
    spread: float = 0.05,
    negative_threshold: float = 0.05,
    negative_spread: float = 0.005,
    temperature: float = 2.0,
    least: int = 25,
) -> Choice:
    """All of a round's choices; images that lose their label to the balance keep negatives."""
    label, positive, deviation = positive_labels(logits, threshold, spread)
    if balanced:
        positive = balance(label, positive, deviation, logits.shape[2], least)
    negative = unlikely_classes(logits, negative_threshold, negative_spread, temperature)
    return Choice(label, positive, negative & ~positive[:, None])


def positive_labels(
    logits: Tensor, threshold: float = 0.7, spread: float = 0.05
) -> tuple[Tensor, Tensor, Tensor]:
    """Each image's best class, whether it is likely and steady enough, and its deviation."""
    deviation, mean = torch.std_mean(logits.float().softmax(dim=2), dim=0)
    confidence, label = mean.max(dim=1)
    deviation = deviation.gather(1, label[:, None])[:, 0]
    return label, (confidence >= threshold) & (deviation < spread), deviation


def unlikely_classes(
    logits: Tensor, threshold: float = 0.05, spread: float = 0.005, temperature: float = 2.0
) -> Tensor:
    """Classes (N, C) that are steadily unlikely even in softened predictions; never the best."""
    deviation, mean = torch.std_mean((logits.float() / temperature).softmax(dim=2), dim=0)
    best = mean == mean.amax(dim=1, keepdim=True)
    return (mean < threshold) & (deviation < spread) & ~best


def balance(
    label: Tensor, positive: Tensor, deviation: Tensor, num_classes: int, least: int = 25
) -> Tensor:
    """Of each class the steadiest only: as many as the rarest class has, but at least `least`."""
    counts = torch.bincount(label, weights=positive.float(), minlength=num_classes)
    kept = counts.min().clamp(min=least)
    order = torch.where(positive, deviation, torch.inf).argsort(stable=True)
    # Place of each image among those of its class, the steadiest first.
    member = torch.nn.functional.one_hot(label[order], num_classes)
    place = member.cumsum(dim=0).gather(1, label[order][:, None])[:, 0]
    chosen = torch.zeros_like(positive)
    chosen[order] = place <= kept
    return positive & chosen
