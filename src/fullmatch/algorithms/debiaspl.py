"""DebiasPL (Wang et al., CVPR 2022): remove the network's preference for some classes.

The running mean of the predictions on unlabeled images shows which classes the network prefers. Its
logarithm is subtracted from the weak view's logits before they become labels, and added to the
strong view's logits in the loss, so that preferred classes need a smaller margin than others. The
mean includes the batch it is used for: for the labels as in USB, for the margin as in the authors'
code. The authors' further additions for ImageNet (CLD loss, CLIP) are left out.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabels,
)
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Batch, Task
from fullmatch.losses import cross_entropy


class ClassPreference(nn.Module):
    """How often each class is predicted, as a running mean of the probabilities."""

    mean: Tensor  # (C,)

    def __init__(self, num_classes: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.full((num_classes,), 1 / num_classes))

    def remember(self, probs: Tensor) -> None:
        self.mean.lerp_(distributed.mean(probs.mean(dim=0)), 1 - self.momentum)

    def forward(self) -> Tensor:  # (C,)
        """The logarithm of the mean; finite even if a class was never predicted."""
        return self.mean.clamp(min=1e-12).log()


class DebiasedLabeler(nn.Module):
    """Hard labels from logits less the preference for each class."""

    def __init__(self, weighting: nn.Module, preference: ClassPreference, factor: float) -> None:
        super().__init__()
        self.weighting, self.preference, self.factor = weighting, preference, factor

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        logits = passes.weak.logits.detach().float()
        self.preference.remember(logits.softmax(dim=1))
        probs = (logits - self.factor * self.preference()).softmax(dim=1)
        label = probs.argmax(dim=1)
        return PseudoLabels(probs, label, label, self.weighting(probs, batch.unlabeled_index))


class DebiasPLLoss(ExtendedPseudoLabeling):
    """The margin is part of the consistency loss only; extra losses use the plain logits."""

    def consistency(self, passes: Passes[object], pseudo: PseudoLabels) -> Tensor:
        assert isinstance(self.labeler, DebiasedLabeler)
        # A copy, since the mean changes before the backward pass reads it.
        margin = self.labeler.factor * self.labeler.preference()
        logits = passes.strong[0].logits.float() + margin
        return cross_entropy(logits, pseudo.target, pseudo.weight)


@dataclass(frozen=True, kw_only=True)
class DebiasPL(FixMatch):
    """`factor` is 0.4 in USB and in the authors' ImageNet settings; larger ones debias more."""

    about: ClassVar[About] = About(
        "DebiasPL", 2022, "removes the preference for some classes", "mean prediction"
    )

    factor: Amount = 0.4  # of the preference that is removed
    momentum: Share = 0.999  # of the mean prediction

    def labeler(self, task: Task) -> DebiasedLabeler:
        preference = ClassPreference(task.num_classes, self.momentum)
        return DebiasedLabeler(self.weighting(task), preference, self.factor)

    def build(self, task: Task) -> DebiasPLLoss:
        return DebiasPLLoss(super().build(task))
