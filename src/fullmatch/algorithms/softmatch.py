"""SoftMatch (Chen et al., ICLR 2023): a truncated Gaussian weights less confident images."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.alignment import MovingMean, align
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import Passes, PseudoLabels
from fullmatch.config.limits import Positive, Share
from fullmatch.core import About, Batch, Task


class GaussianWeight(nn.Module):
    """1 at or above the mean confidence; below it, the height of a Gaussian around it."""

    mean: Tensor  # () moving average of the largest probability
    variance: Tensor  # () moving average of its variance within a batch

    def __init__(self, spec: "SoftMatch", num_classes: int) -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("mean", torch.tensor(1 / num_classes))
        self.register_buffer("variance", torch.ones(()))

    def remember(self, confidence: Tensor) -> None:
        every = distributed.gather(confidence)
        variance = every.var(correction=min(1, len(every) - 1))
        self.mean.lerp_(every.mean(), 1 - self.spec.momentum)
        self.variance.lerp_(variance, 1 - self.spec.momentum)

    def forward(self, confidence: Tensor) -> Tensor:
        below = (confidence - self.mean).clamp(max=0.0)
        variance = (self.variance / self.spec.deviations**2).clamp(min=1e-12)
        return torch.exp(-below.square() / (2 * variance))


class SoftLabelWeights(nn.Module):
    """The label is from the plain prediction, its weight from the aligned prediction."""

    def __init__(self, spec: "SoftMatch", num_classes: int) -> None:
        super().__init__()
        self.spec = spec
        self.weight = GaussianWeight(spec, num_classes)
        self.predicted = MovingMean(num_classes, spec.momentum)
        self.wanted = MovingMean(num_classes, spec.momentum)

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        confidence, label = probs.max(dim=1)
        self.weight.remember(confidence)
        if self.spec.alignment == "labeled":
            wanted = self.wanted(passes.labeled.logits.detach().float().softmax(dim=1))
        else:
            wanted = torch.full_like(self.wanted.mean, 1 / probs.shape[1])
        if self.spec.alignment != "none":
            confidence = align(probs, self.predicted(probs), wanted).amax(dim=1)
        return PseudoLabels(probs, label, label, self.weight(confidence))


@dataclass(frozen=True, kw_only=True)
class SoftMatch(FixMatch):
    """As in TorchSSL: averages of plain predictions, aligned to the labeled predictions."""

    about: ClassVar[About] = About(
        "SoftMatch", 2023, "weights by a truncated Gaussian", "mean and variance of confidence"
    )

    threshold: ClassVar[float] = 0.0  # type: ignore[misc]  # not a field: the weight replaces it
    momentum: Share = 0.999  # of all averages
    deviations: Positive = 2.0  # the Gaussian's width is the standard deviation divided by this
    alignment: Literal["labeled", "uniform", "none"] = "labeled"  # target of the alignment

    def labeler(self, task: Task) -> SoftLabelWeights:
        return SoftLabelWeights(self, task.num_classes)
