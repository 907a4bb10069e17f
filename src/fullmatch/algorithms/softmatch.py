"""SoftMatch (Chen et al., ICLR 2023): a truncated Gaussian weights less confident images."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.alignment import MovingMean, align, label_weights
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

    label_weights: Tensor  # (C,) of labeled images, by class

    def __init__(self, spec: "SoftMatch", task: Task) -> None:
        super().__init__()
        self.spec, num_classes = spec, task.num_classes
        self.weight = GaussianWeight(spec, num_classes)
        # TorchSSL starts at equal shares; USB, which aligns to uniform, at the first batch.
        self.predicted = MovingMean(num_classes, spec.momentum, uniform=spec.alignment != "uniform")
        self.wanted = MovingMean(num_classes, spec.momentum, uniform=True)
        self.register_buffer("label_weights", label_weights(task), persistent=False)

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        confidence, label = probs.max(dim=1)
        aligned = self.align(probs, passes, batch)
        # TorchSSL takes the statistics of plain predictions, USB of those aligned to uniform.
        self.weight.remember(aligned if self.spec.alignment == "uniform" else confidence)
        return PseudoLabels(probs, label, label, self.weight(aligned))

    def align(self, probs: Tensor, passes: Passes[object], batch: Batch) -> Tensor:  # (U,)
        """The largest probability of each image after alignment."""
        if self.spec.alignment == "none":
            return probs.amax(dim=1)
        if self.spec.alignment == "labeled":
            known = passes.labeled.logits.detach().float().softmax(dim=1)
            wanted = self.wanted(known * self.label_weights[batch.labels][:, None])
        else:
            wanted = torch.full_like(self.wanted.mean, 1 / probs.shape[1])
        return align(probs, self.predicted(probs), wanted).amax(dim=1)


@dataclass(frozen=True, kw_only=True)
class SoftMatch(FixMatch):
    """As in TorchSSL: averages of plain predictions, aligned to the labeled predictions.

    `alignment="uniform"` is USB's form, whose averages are of the aligned predictions.
    """

    about: ClassVar[About] = About(
        "SoftMatch", 2023, "weights by a truncated Gaussian", "mean and variance of confidence"
    )

    threshold: ClassVar[float] = 0.0  # type: ignore[misc]  # not a field: the weight replaces it
    momentum: Share = 0.999  # of all averages
    deviations: Positive = 2.0  # the Gaussian's width is the standard deviation divided by this
    alignment: Literal["labeled", "uniform", "none"] = "labeled"  # target of the alignment

    def labeler(self, task: Task) -> SoftLabelWeights:
        return SoftLabelWeights(self, task)
