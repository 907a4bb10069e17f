"""UDA (Xie et al., NeurIPS 2020): sharpened soft labels, and optional signal annealing."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Labeler,
    Passes,
    PseudoLabeling,
    PseudoLabels,
)
from fullmatch.config.limits import Positive, Share
from fullmatch.core import About, Batch, Task
from fullmatch.losses import cross_entropy

Annealing = Literal["none", "linear", "exp", "log"]


def signal_ceiling(progress: Tensor, num_classes: int, annealing: Annealing) -> Tensor:
    """The confidence above which labeled images are left out: rises from 1 / C to 1."""
    if annealing == "linear":
        share = progress
    elif annealing == "exp":
        share = torch.exp(5 * (progress - 1))
    else:
        share = 1 - torch.exp(-5 * progress)
    return share * (1 - 1 / num_classes) + 1 / num_classes


class SoftLabeler(Labeler):
    """Selects by the plain prediction; the target is that prediction at a lower temperature."""

    def __init__(self, weighting: nn.Module, temperature: float) -> None:
        super().__init__(weighting)
        self.temperature = temperature

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        pseudo = super().forward(passes, batch, progress)
        logits = passes.weak.logits.detach().float()
        return pseudo._replace(target=(logits / self.temperature).softmax(dim=1))


class UDALoss(ExtendedPseudoLabeling):
    """Leaves out labeled images that are predicted with high confidence too early."""

    def __init__(self, plain: PseudoLabeling, annealing: Annealing) -> None:
        super().__init__(plain)
        self.annealing = annealing

    def supervised(self, passes: Passes[object], batch: Batch, progress: Tensor) -> Tensor:
        logits = passes.labeled.logits
        if self.annealing == "none":
            return cross_entropy(logits, batch.labels)
        confidence = logits.detach().float().softmax(dim=1).amax(dim=1)
        used = confidence <= signal_ceiling(progress, logits.shape[1], self.annealing)
        # Averaged over the whole batch, as in TorchSSL; the authors average over the used images.
        return cross_entropy(logits, batch.labels, used.float())


@dataclass(frozen=True, kw_only=True)
class UDA(FixMatch):
    """FixMatch with sharpened soft labels."""

    about: ClassVar[About] = About("UDA", 2020, "sharpened soft labels above a threshold")

    threshold: Share = 0.8
    temperature: Positive = 0.4  # of the soft labels; lower is sharper
    annealing: Annealing = "none"  # training signal annealing (TSA) of the labeled loss

    def labeler(self, task: Task) -> SoftLabeler:
        return SoftLabeler(self.weighting(task), self.temperature)

    def build(self, task: Task) -> UDALoss:
        return UDALoss(super().build(task), self.annealing)
