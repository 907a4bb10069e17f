"""IOMatch (Li et al., ICCV 2023): unlabeled images may belong to classes that have no label.

One-vs-all heads say for each class whether an image is of it. Together with the classifier they
give a target over all classes and one more, "unknown", which a third head learns from all unlabeled
images; the classifier itself learns only from likely known ones. Follows the authors' code.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.alignment import RecentMean, align_to_uniform
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import perceptron
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    FixedThreshold,
    Passes,
    PseudoLabeling,
    PseudoLabels,
    Step,
)
from fullmatch.config.limits import Amount, Count, Share
from fullmatch.core import About, Batch, Network, Objective, Task
from fullmatch.losses import cross_entropy


class IOMatchHeads(NamedTuple):
    """What the heads say about each view."""

    labeled: Tensor  # (L, C) logits of the one-vs-all classifiers: is the image of this class?
    inlier: Tensor  # (U, C) their probabilities for the weak view, without gradient
    strong: Tensor  # (U, C + 1) logits of the open-set classifier


class InlierHeads(nn.Module):
    """A projection of the features, one-vs-all classifiers, and the open-set classifier.

    The latter has one class more, for unknown images.
    """

    def __init__(self, task: Task, width: int) -> None:
        super().__init__()
        self.projection = perceptron(task.features, task.features, width)
        self.one_vs_all = nn.Linear(width, 2 * task.num_classes, bias=False)
        self.open_set = nn.Linear(width, task.num_classes + 1)
        nn.init.xavier_normal_(self.one_vs_all.weight)
        nn.init.xavier_normal_(self.open_set.weight)
        nn.init.zeros_(self.open_set.bias)

    def inlier_logits(self, features: Tensor) -> Tensor:
        """(B, C): each class by itself is a pair of logits, no and yes, whose difference counts."""
        pairs: Tensor = self.one_vs_all(self.projection(features)).float()
        no, yes = pairs.chunk(2, dim=1)
        return yes - no

    def open_set_logits(self, features: Tensor) -> Tensor:  # (B, D) -> (B, C + 1)
        logits: Tensor = self.open_set(self.projection(features))
        return logits


class InlierLabeler(nn.Module):
    """Soft labels, aligned to equal classes; used if confident and more likely known than not."""

    def __init__(self, weighting: nn.Module, mean: RecentMean | None) -> None:
        super().__init__()
        self.weighting, self.mean = weighting, mean

    def forward(self, passes: Passes[IOMatchHeads], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        if self.mean is not None:
            probs = align_to_uniform(probs, self.mean(probs))
        known = open_set_target(probs, passes.heads.inlier)[:, -1] < 0.5
        weight = self.weighting(probs, batch.unlabeled_index) * known
        return PseudoLabels(probs, probs.argmax(dim=1), probs, weight)


class OneVsAllLoss(nn.Module):
    """Labeled images: yes for their class, and no for the class that is hardest to rule out."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step[IOMatchHeads]) -> Objective:
        loss = one_vs_all_loss(step.passes.heads.labeled, step.batch.labels)
        return Objective(self.coefficient * loss, {"one_vs_all": loss})


class OpenSetLoss(nn.Module):
    """Every unlabeled image with a clear target teaches the open-set classifier."""

    def __init__(self, coefficient: float, threshold: float, start: float) -> None:
        super().__init__()
        self.coefficient, self.threshold, self.start = coefficient, threshold, start

    def forward(self, step: Step[IOMatchHeads]) -> Objective:
        heads = step.passes.heads
        target = open_set_target(step.pseudo.probs, heads.inlier)
        clear = (target.amax(dim=1) >= self.threshold).float()
        loss = cross_entropy(heads.strong, target, clear * (step.progress >= self.start))
        share = (target[:, -1] < 0.5).float().mean()
        return Objective(self.coefficient * loss, {"open_set": loss, "looks_known": share})


class IOMatchLoss(ExtendedPseudoLabeling):
    """The family's module with the heads."""

    predicts_unknown = True

    def __init__(self, plain: PseudoLabeling, heads: InlierHeads) -> None:
        super().__init__(plain)
        self.heads = heads

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[IOMatchHeads]:
        passes, heads = super().passes(student, batch, teacher), self.heads
        # Detached rather than run without gradient, as in `HeadedPseudoLabeling`.
        weak = heads.inlier_logits(passes.weak.features.detach()).detach()
        labeled = heads.inlier_logits(passes.labeled.features)
        strong = heads.open_set_logits(passes.strong[0].features)
        return passes._replace(heads=IOMatchHeads(labeled, weak.sigmoid(), strong))

    def predict_open_set(self, network: Network, images: Tensor) -> Tensor:
        return self.heads.open_set_logits(network(images).features).float().softmax(dim=1)


def open_set_target(probs: Tensor, inlier: Tensor) -> Tensor:
    """(B, C + 1): each class if the image is of it, and the rest for "unknown"."""
    return torch.cat([probs * inlier, (probs * (1 - inlier)).sum(dim=1, keepdim=True)], dim=1)


def one_vs_all_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """-log of yes for the label, and -log of no for the most likely other class."""
    own = torch.arange(logits.shape[1], device=labels.device) == labels[:, None]
    yes = F.softplus(-logits).gather(1, labels[:, None])[:, 0]
    no = F.softplus(logits).masked_fill(own, 0.0).amax(dim=1)
    return (yes + no).mean()


@dataclass(frozen=True, kw_only=True)
class IOMatch(FixMatch):
    """The authors align predictions, except on CIFAR-10, see `experiment/published_settings.py`."""

    about: ClassVar[About] = About(
        "IOMatch", 2023, "unknown images become one more class", "mean prediction"
    )
    open_set: ClassVar[bool] = True

    open_threshold: Share = 0.5  # for targets of the open-set classifier
    one_vs_all: Amount = 1.0  # weight of the one-vs-all loss
    open_weight: Amount = 1.0  # weight of the open-set loss
    open_start: Share = 1 / 256  # share of the training after which the open-set loss begins
    align: bool = True  # rescale labels so that all classes are equally frequent
    batches: Count = 128  # over which the mean prediction is taken
    width: Count = 128  # of the projection

    def labeler(self, task: Task) -> nn.Module:
        mean = RecentMean(task.num_classes, self.batches) if self.align else None
        return InlierLabeler(FixedThreshold(self.threshold), mean)

    def extras(self, task: Task) -> tuple[nn.Module, ...]:
        return (
            OneVsAllLoss(self.one_vs_all),
            OpenSetLoss(self.open_weight, self.open_threshold, self.open_start),
        )

    def build(self, task: Task) -> IOMatchLoss:
        return IOMatchLoss(super().build(task), InlierHeads(task, self.width))
