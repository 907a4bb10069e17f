"""AdaMatch (Berthelot et al., ICLR 2022): labels aligned and selected relative to labeled images.

Predictions of unlabeled images are aligned to those of labeled images, and the threshold is a share
of the confidence in labeled images. The labeled images are normalized twice, by themselves and with
the whole batch, and their logits are drawn between the two results. The parts are those of the
authors' code; the threshold, the momentum and the ratio are USB's, which has no interpolation.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.alignment import MovingMean, align, label_weights
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.passes import linear_ramp, run_separately
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabeling,
    PseudoLabels,
    Step,
)
from fullmatch.algorithms.sampling import draw_uniform
from fullmatch.config.limits import Share
from fullmatch.core import About, Batch, Network, Objective, Output, Task, Thresholds, Views
from fullmatch.losses import cross_entropy


class AdaMatchHeads(NamedTuple):
    """What the labeled views say, after the interpolation."""

    labeled: Tensor  # (views * L, C) logits of all labeled views, the weak ones first
    threshold: Tensor  # () for the unlabeled images, without gradient


class AlignedLabeler(nn.Module):
    """Hard labels from predictions whose mean is aligned to that of the labeled images."""

    label_weights: Tensor  # (C,) of labeled images, by class

    def __init__(self, spec: "AdaMatch", task: Task) -> None:
        super().__init__()
        self.predicted = MovingMean(task.num_classes, spec.momentum)
        self.wanted = MovingMean(task.num_classes, spec.momentum)
        self.register_buffer("label_weights", label_weights(task), persistent=False)

    def forward(
        self, passes: Passes[AdaMatchHeads], batch: Batch, progress: Tensor
    ) -> PseudoLabels:
        labeled = passes.labeled.logits.detach().float().softmax(dim=1)
        labeled = labeled * self.label_weights[batch.labels][:, None]
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        probs = align(probs, self.predicted(probs), self.wanted(labeled))
        confidence, label = probs.max(dim=1)
        weight = (confidence >= passes.heads.threshold).float()
        return PseudoLabels(probs, label, label, weight)


class AdaMatchLoss(ExtendedPseudoLabeling):
    """`passes.labeled` has the interpolated logits of the first labeled view, the weak one."""

    def __init__(self, plain: PseudoLabeling, spec: "AdaMatch") -> None:
        super().__init__(plain)
        self.spec = spec

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[AdaMatchHeads]:
        images = torch.cat(batch.labeled)
        passes = super().passes(student, batch._replace(labeled=(images,)), teacher)
        joint = passes.labeled.logits.float()
        separate = run_separately(student, images).logits.float()
        weak = slice(len(batch.labels))
        shapes = [joint[weak].shape] * len(batch.labeled)
        logits = joint.lerp(separate, torch.cat(draw_uniform(shapes, joint.device)))
        labeled = Output(logits[weak], passes.labeled.features[weak])
        confidence = labeled.logits.detach().softmax(dim=1).amax(dim=1).mean()
        threshold = self.spec.threshold * distributed.mean(confidence)
        return passes._replace(labeled=labeled, heads=AdaMatchHeads(logits, threshold))

    def supervised(self, passes: Passes[AdaMatchHeads], batch: Batch, progress: Tensor) -> Tensor:
        labels = batch.labels.repeat(len(batch.labeled))
        return cross_entropy(passes.heads.labeled, labels)

    def unlabeled_weight(self, progress: Tensor) -> Tensor:
        """Rises along half a cosine wave."""
        share = linear_ramp(progress, self.spec.ramp)
        return self.spec.coefficient * (1 - torch.cos(math.pi * share)) / 2

    def extra_objectives(self, step: Step[AdaMatchHeads]) -> list[Objective]:
        threshold = step.passes.heads.threshold
        reported = Objective(torch.zeros_like(threshold), {"threshold": threshold})
        return [*super().extra_objectives(step), reported]


@dataclass(frozen=True, kw_only=True)
class AdaMatch(FixMatch):
    """The threshold is relative: 0.95 of the mean confidence in the labeled images of the batch."""

    about: ClassVar[About] = About(
        "AdaMatch", 2022, "aligned labels, threshold relative to labeled", "two mean predictions"
    )
    views: ClassVar[Views] = Views(labeled=("weak", "strong"))
    thresholds: ClassVar[Thresholds] = "adaptive"

    momentum: Share = 0.999  # of both mean predictions
    ramp: Share = 0.5  # share of the training over which the weight of the unlabeled loss rises

    def labeler(self, task: Task) -> AlignedLabeler:
        return AlignedLabeler(self, task)

    def build(self, task: Task) -> AdaMatchLoss:
        return AdaMatchLoss(super().build(task), self)
