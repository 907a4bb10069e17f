"""UPS (Rizve et al., ICLR 2021), online: label what dropout leaves certain, rule out the unlikely.

The paper trains in rounds (see `ups_rounds`). This form, to which published comparisons refer,
samples dropout in every step, chooses by FlexMatch's thresholds and a limit on entropy, and teaches
images without a label which classes they are not. Its details are ours: dropout acts on the pooled
features of every view, since networks here have none of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from fullmatch.algorithms.about import About
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.pseudo_labeling import Member, Passes, PseudoLabeling, PseudoLabels, Step
from fullmatch.algorithms.sampling import (
    CertainCurriculum,
    dropped,
    entropies,
    log_mean,
    sampled_cross_entropy,
)
from fullmatch.algorithms.ups_rounds import unlikely_classes
from fullmatch.config.limits import Amount, Limits, Part, Share
from fullmatch.core import Batch, Network, Objective, Output, Task
from fullmatch.errors import UserError
from fullmatch.losses import negative_learning


class CertainLabeler(nn.Module):
    """Hard labels from the mean of the weak view's samples."""

    def __init__(self, weighting: CertainCurriculum) -> None:
        super().__init__()
        self.weighting = weighting

    def forward(self, passes: Passes, batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        label = probs.argmax(dim=1)
        weight = self.weighting.select(probs, batch.unlabeled_index, entropies(probs))
        return PseudoLabels(probs, label, label, weight)


class UnlikelyNegatives(nn.Module):
    """Rules out the steadily unlikely classes of images that have no label."""

    def __init__(self, spec: "UPS") -> None:
        super().__init__()
        self.spec = spec

    def forward(self, step: Step) -> Objective:
        spec, samples = self.spec, step.passes.heads[0].detach()
        unlikely = unlikely_classes(samples, spec.negative_threshold, spec.negative_spread)
        negative = unlikely & (step.pseudo.weight == 0)[:, None]
        loss = negative_learning(step.passes.strong[0].logits, negative)
        return Objective(spec.negatives * loss, {"unlikely_negative": loss})


class UPSLoss(Member):
    """`heads` holds the weak and the strong view's samples (S, U, C); their means the logits."""

    def __init__(self, plain: PseudoLabeling, spec: "UPS") -> None:
        super().__init__(plain)
        self.spec = spec

    def passes(self, student: Network, batch: Batch) -> Passes:
        passes = super().passes(student, batch)
        samples = self.spec.samples
        seen = dropped(
            self.spec.dropout,
            passes.labeled.features[None],
            passes.weak.features.detach().expand(samples, -1, -1),
            passes.strong[0].features.expand(samples, -1, -1),
        )
        labeled, weak, strong = (classified(student, one) for one in seen)
        return Passes(
            Output(labeled[0], passes.labeled.features),
            Output(log_mean(weak.detach()), passes.weak.features),
            (Output(log_mean(strong), passes.strong[0].features),),
            (weak.detach(), strong),
        )

    def consistency(self, passes: Passes, pseudo: PseudoLabels) -> Tensor:
        return sampled_cross_entropy(passes.heads[1], pseudo.target, pseudo.weight)


def classified(network: Network, samples: Tensor) -> Tensor:  # (S, B, F) -> (S, B, C)
    return torch.unflatten(network.classify(samples.flatten(0, 1)), 0, (len(samples), -1))


@dataclass(frozen=True, kw_only=True)
class UPS(FlexMatch):
    """Evaluation is without dropout."""

    about: ClassVar[About] = About(
        "UPS", 2021, "labels that dropout leaves certain", "a label an image"
    )

    samples: Annotated[int, Limits(2)] = 10
    dropout: Part = 0.3
    uncertainty: Amount = 0.4  # largest entropy of a labeled image
    negatives: Amount = 1.0  # weight of the negative loss
    negative_threshold: Share = 0.05
    negative_spread: Amount = 0.005  # largest deviation of an unlikely class's probability

    def labeler(self, task: Task) -> nn.Module:
        return CertainLabeler(
            CertainCurriculum(
                self.threshold, task, warmup=self.warmup, uncertainty=self.uncertainty
            )
        )

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (UnlikelyNegatives(self),)

    def build(self, task: Task) -> UPSLoss:
        if self.samples < 2:
            raise UserError(f"ups needs 2 or more samples, to see them differ; got {self.samples}")
        return UPSLoss(super().build(task), self)
