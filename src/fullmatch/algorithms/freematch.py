"""FreeMatch (Wang et al., ICLR 2023): self-adaptive thresholds and a fairness loss."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Labeler,
    PseudoLabeling,
    Step,
)
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Objective, Task, Thresholds
from fullmatch.errors import UserError
from fullmatch.losses import self_adaptive_fairness


class SelfAdaptiveThreshold(nn.Module):
    """The mean confidence, scaled down for classes that are predicted less often."""

    confidence: Tensor  # () moving average of the largest probability
    probs: Tensor  # (C,) moving average of the probabilities
    labels: Tensor  # (C,) moving average of how often each class is the argmax

    def __init__(self, spec: "FreeMatch", num_classes: int) -> None:
        super().__init__()
        self.spec = spec
        even = torch.full((num_classes,), 1 / num_classes)
        self.register_buffer("confidence", even[0].clone())
        self.register_buffer("probs", even.clone())
        self.register_buffer("labels", even.clone())

    def thresholds(self) -> Tensor:  # (C,)
        share = self.probs / self.probs.max()
        return (self.confidence * share).clamp(self.spec.floor, self.spec.threshold)

    def forward(self, probs: Tensor, index: Tensor) -> Tensor:
        confidence, label = probs.max(dim=1)
        # Before selecting, so that this batch is part of its own thresholds.
        self.remember(probs, confidence, label)
        return (confidence >= self.thresholds()[label]).float()

    def remember(self, probs: Tensor, confidence: Tensor, label: Tensor) -> None:
        labels = F.one_hot(label, probs.shape[1]).float()
        new = 1 - self.spec.momentum
        self.confidence.lerp_(distributed.mean(confidence.mean()), new)
        self.probs.lerp_(distributed.mean(probs.mean(dim=0)), new)
        self.labels.lerp_(distributed.mean(labels.mean(dim=0)), new)


class FreeMatchLoss(ExtendedPseudoLabeling):
    """The fairness loss uses the same moving averages as the thresholds."""

    def __init__(self, plain: PseudoLabeling, fairness: float) -> None:
        super().__init__(plain)
        self.fairness = fairness

    def extra_objectives(self, step: Step[object]) -> list[Objective]:
        assert isinstance(self.labeler, Labeler)
        adaptive = self.labeler.weighting
        assert isinstance(adaptive, SelfAdaptiveThreshold)
        fairness = self_adaptive_fairness(
            step.passes.strong[0].logits,
            step.pseudo.weight,
            adaptive.probs,
            adaptive.labels,
            distributed.total,
        )
        metrics = {"fairness": fairness, "threshold": adaptive.thresholds().mean()}
        return [*super().extra_objectives(step), Objective(self.fairness * fairness, metrics)]


@dataclass(frozen=True, kw_only=True)
class FreeMatch(FixMatch):
    """The thresholds stay between `floor` and `threshold`, which TorchSSL sets only for SVHN."""

    about: ClassVar[About] = About(
        "FreeMatch", 2023, "self-adaptive thresholds, balanced classes", "means of the predictions"
    )
    thresholds: ClassVar[Thresholds] = "adaptive"

    threshold: Share = 1.0  # upper bound of every class's threshold
    floor: Share = 0.0  # lower bound of every class's threshold
    momentum: Share = 0.999  # of the averages
    fairness: Amount = 0.01  # weight of the fairness loss

    def __post_init__(self) -> None:
        if self.floor > self.threshold:
            raise UserError(
                f"algorithm.floor is {self.floor}, expected {self.threshold} or less, the value "
                "of algorithm.threshold"
            )

    def weighting(self, task: Task) -> SelfAdaptiveThreshold:
        return SelfAdaptiveThreshold(self, task.num_classes)

    def build(self, task: Task) -> FreeMatchLoss:
        return FreeMatchLoss(super().build(task), self.fairness)
