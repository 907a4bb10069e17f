"""UPS (Rizve et al., ICLR 2021), online: labels that are certain under dropout, and negatives.

The paper trains in rounds (see `ups_rounds`). This online form, which published comparisons use,
samples dropout in every step, selects by FlexMatch's thresholds and a limit on the entropy, and
rules out unlikely classes of images without a label. The details are our own: dropout is applied
to the pooled features of every view, since the networks here have no dropout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabeling,
    PseudoLabels,
    Step,
)
from fullmatch.algorithms.sampling import (
    LowEntropyCurriculum,
    apply_dropout,
    entropies,
    log_mean,
    sampled_cross_entropy,
)
from fullmatch.algorithms.ups_rounds import unlikely_classes
from fullmatch.config.limits import Amount, Limits, Share, ShareBelowOne
from fullmatch.core import About, Batch, Network, Objective, Output, Task
from fullmatch.errors import UserError
from fullmatch.losses import negative_learning


class UPSHeads(NamedTuple):
    """Logits of the views, sampled with dropout."""

    weak: Tensor  # (S, U, C), without gradient
    strong: Tensor  # (S, U, C)


class LowEntropyLabeler(nn.Module):
    """Hard labels from the mean of the weak view's samples."""

    def __init__(self, weighting: LowEntropyCurriculum) -> None:
        super().__init__()
        self.weighting = weighting

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        label = probs.argmax(dim=1)
        weight = self.weighting.select(probs, batch.unlabeled_index, entropies(probs))
        return PseudoLabels(probs, label, label, weight)


class UnlikelyNegatives(nn.Module):
    """Rules out classes of images without a label that are unlikely in all samples."""

    def __init__(self, spec: "UPS") -> None:
        super().__init__()
        self.spec = spec

    def forward(self, step: Step[UPSHeads]) -> Objective:
        spec, samples = self.spec, step.passes.heads.weak.detach()
        unlikely = unlikely_classes(samples, spec.negative_threshold, spec.negative_spread)
        negative = unlikely & (step.pseudo.weight == 0)[:, None]
        loss = negative_learning(step.passes.strong[0].logits, negative, distributed.mean)
        return Objective(spec.negatives * loss, {"unlikely_negative": loss})


class UPSLoss(ExtendedPseudoLabeling):
    """The logits of its passes are the means over the dropout samples."""

    def __init__(self, plain: PseudoLabeling, spec: "UPS") -> None:
        super().__init__(plain)
        self.spec = spec

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[UPSHeads]:
        passes = super().passes(student, batch, teacher)
        samples = self.spec.samples
        features = apply_dropout(
            self.spec.dropout,
            passes.labeled.features[None],
            passes.weak.features.detach().expand(samples, -1, -1),
            passes.strong[0].features.expand(samples, -1, -1),
        )
        labeled, weak, strong = (classify_samples(student, one) for one in features)
        return Passes(
            Output(labeled[0], passes.labeled.features),
            Output(log_mean(weak.detach()), passes.weak.features),
            (Output(log_mean(strong), passes.strong[0].features),),
            UPSHeads(weak.detach(), strong),
        )

    def consistency(self, passes: Passes[UPSHeads], pseudo: PseudoLabels) -> Tensor:
        return sampled_cross_entropy(passes.heads.strong, pseudo.target, pseudo.weight)


def classify_samples(network: Network, samples: Tensor) -> Tensor:  # (S, B, F) -> (S, B, C)
    return torch.unflatten(network.classify(samples.flatten(0, 1)), 0, (len(samples), -1))


@dataclass(frozen=True, kw_only=True)
class UPS(FlexMatch):
    """Evaluated without dropout."""

    about: ClassVar[About] = About(
        "UPS", 2021, "labels that are certain under dropout", "one label per image"
    )

    samples: Annotated[int, Limits(2)] = 10
    dropout: ShareBelowOne = 0.3
    uncertainty: Amount = 0.4  # largest entropy of a labeled image
    negatives: Amount = 1.0  # weight of the negative loss
    negative_threshold: Share = 0.05
    negative_spread: Amount = 0.005  # largest standard deviation of a negative's probability

    def labeler(self, task: Task) -> nn.Module:
        return LowEntropyLabeler(
            LowEntropyCurriculum(
                self.threshold, task, warmup=self.warmup, uncertainty=self.uncertainty
            )
        )

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (UnlikelyNegatives(self),)

    def build(self, task: Task) -> UPSLoss:
        if self.samples < 2:
            raise UserError(
                f"algorithm.samples is {self.samples}; ups needs 2 or more to measure uncertainty"
            )
        return UPSLoss(super().build(task), self)
