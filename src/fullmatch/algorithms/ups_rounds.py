"""UPS (Rizve et al., ICLR 2021), the rounds of the paper: which labels a network passes on.

After each round the network labels every unlabeled image several times with dropout; the next
round trains a new network on what is chosen here. `logits` is (S, N, C): S samples of N images.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class PseudoLabelChoice(NamedTuple):
    """What the next round learns about each unlabeled image."""

    label: Tensor  # (N,) int64, the most likely class
    positive: Tensor  # (N,) bool, whether that label is learned
    negative: Tensor  # (N, C) bool, classes that are ruled out; none if `positive`

    @property
    def has_negatives(self) -> Tensor:  # (N,) bool
        return self.negative.any(dim=1)


@dataclass(frozen=True)
class ChoiceLimits:
    """How likely and how certain a class must be; `spread` is a standard deviation."""

    threshold: float = 0.7
    spread: float = 0.05
    negative_threshold: float = 0.05
    negative_spread: float = 0.005
    temperature: float = 2.0  # of the predictions that negatives are chosen from
    minimum: int = 25  # labels per class that balancing keeps at least


PUBLISHED = ChoiceLimits()


def choose_labels(
    logits: Tensor, *, balanced: bool, limits: ChoiceLimits = PUBLISHED
) -> PseudoLabelChoice:
    """What a round passes on; `balanced`: equally many labels of every class.

    Images that lose their label to balancing keep their negatives.
    """
    label, positive, deviation = positive_labels(logits, limits.threshold, limits.spread)
    if balanced:
        positive = balance_classes(label, positive, deviation, logits.shape[2], limits.minimum)
    negative = unlikely_classes(
        logits, limits.negative_threshold, limits.negative_spread, limits.temperature, label
    )
    return PseudoLabelChoice(label, positive, negative & ~positive[:, None])


def positive_labels(
    logits: Tensor, threshold: float = 0.7, spread: float = 0.05
) -> tuple[Tensor, Tensor, Tensor]:
    """Each image's best class, whether it is likely and certain enough, and its deviation."""
    deviation, mean = torch.std_mean(logits.float().softmax(dim=2), dim=0)
    confidence, label = mean.max(dim=1)
    deviation = deviation.gather(1, label[:, None])[:, 0]
    return label, (confidence >= threshold) & (deviation < spread), deviation


def unlikely_classes(
    logits: Tensor,
    threshold: float = 0.05,
    spread: float = 0.005,
    temperature: float = 2.0,
    label: Tensor | None = None,
) -> Tensor:
    """Classes (N, C) that are unlikely in all samples, even if softened; never the label (N,).

    Without labels, the class that is best after softening is the label.
    """
    deviation, mean = torch.std_mean((logits.float() / temperature).softmax(dim=2), dim=0)
    best = mean == mean.amax(dim=1, keepdim=True)
    if label is not None:
        best = torch.zeros_like(best).scatter(1, label[:, None], True)
    return (mean < threshold) & (deviation < spread) & ~best


def balance_classes(
    label: Tensor, positive: Tensor, deviation: Tensor, num_classes: int, minimum: int = 25
) -> Tensor:
    """Keep the most certain labels of each class: as many as the rarest has, or `minimum`."""
    counts = torch.bincount(label, weights=positive.float(), minlength=num_classes)
    limit = counts.min().clamp(min=minimum)
    order = torch.where(positive, deviation, torch.inf).argsort(stable=True)
    # Rank of each image within its class, the most certain first.
    member = torch.nn.functional.one_hot(label[order], num_classes)
    rank = member.cumsum(dim=0).gather(1, label[order][:, None])[:, 0]
    chosen = torch.zeros_like(positive)
    chosen[order] = rank <= limit
    return positive & chosen
