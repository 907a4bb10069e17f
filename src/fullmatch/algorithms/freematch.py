"""FreeMatch (Wang et al., ICLR 2023): thresholds follow the predictions, classes stay even."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.about import About
from fullmatch.algorithms.fixmatch import FixMatch, Thresholds
from fullmatch.algorithms.pseudo_labeling import Labeler, Member, Step
from fullmatch.config.limits import Amount, Share
from fullmatch.core import Objective, Task
from fullmatch.errors import UserError
from fullmatch.losses import self_adaptive_fairness


class SelfAdaptiveThreshold(nn.Module):
    """The mean confidence, scaled down for classes that are predicted less."""

    confidence: Tensor  # () moving average of the largest probability
    probs: Tensor  # (C,) of the probabilities
    labels: Tensor  # (C,) of how often each class has the largest

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
        # Before selecting: this batch already counts in its own thresholds.
        self.remember(probs, confidence, label)
        return (confidence >= self.thresholds()[label]).float()

    def remember(self, probs: Tensor, confidence: Tensor, label: Tensor) -> None:
        labels = F.one_hot(label, probs.shape[1]).float()
        new = 1 - self.spec.momentum
        self.confidence.lerp_(distributed.mean(confidence.mean()), new)
        self.probs.lerp_(distributed.mean(probs.mean(dim=0)), new)
        self.labels.lerp_(distributed.mean(labels.mean(dim=0)), new)


class FreeMatchLoss(Member):
    """The fairness loss reads the averages that the thresholds are made of."""

    fairness: float = 0.0

    def additions(self, step: Step) -> list[Objective]:
        assert isinstance(self.labeler, Labeler)
        adaptive = self.labeler.weighting
        assert isinstance(adaptive, SelfAdaptiveThreshold)
        fairness = self_adaptive_fairness(
            step.passes.strong[0].logits, step.pseudo.weight, adaptive.probs, adaptive.labels
        )
        metrics = {"fairness": fairness, "threshold": adaptive.thresholds().mean()}
        return [*super().additions(step), Objective(self.fairness * fairness, metrics)]


@dataclass(frozen=True, kw_only=True)
class FreeMatch(FixMatch):
    """For SVHN, TorchSSL keeps the thresholds in [0.9, 0.95]: `floor=0.9, threshold=0.95`."""

    about: ClassVar[About] = About(
        "FreeMatch", 2023, "self-adaptive thresholds, even classes", "means of the predictions"
    )
    thresholds: ClassVar[Thresholds] = "found"

    threshold: Share = 1.0  # above which no class's own threshold rises
    floor: Share = 0.0  # below which none falls
    momentum: Share = 0.999  # of the averages
    fairness: Amount = 0.01  # weight of the fairness loss

    def __post_init__(self) -> None:
        if self.floor > self.threshold:
            raise UserError(
                f"algorithm.floor is {self.floor}, expected {self.threshold} or less, which is "
                "algorithm.threshold"
            )

    def weighting(self, task: Task) -> SelfAdaptiveThreshold:
        return SelfAdaptiveThreshold(self, task.num_classes)

    def build(self, task: Task) -> FreeMatchLoss:
        algorithm = FreeMatchLoss(super().build(task))
        algorithm.fairness = self.fairness
        return algorithm
