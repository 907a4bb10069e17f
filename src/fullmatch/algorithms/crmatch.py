"""CRMatch (Fan et al., IJCV 2022): views keep their class while their features stay apart.

FixMatch's labels make the classifier invariant; a loss on the feature maps and a head that tells
quarter turns keep the features equivariant. As in USB; the paper's own code was not at hand.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.about import About
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import perceptron
from fullmatch.algorithms.pseudo_labeling import Member, Passes, PseudoLabeling, Step
from fullmatch.algorithms.rotation import check_square, turned
from fullmatch.config.limits import Amount
from fullmatch.core import Batch, Network, Objective, Output, Task
from fullmatch.losses import cross_entropy


class FeatureDistance(nn.Module):
    """Cosine of the two views' projected maps where positive, over the selected images."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step) -> Objective:
        weak, strong, _ = step.passes.heads
        cosine = F.cosine_similarity(weak.float(), strong.float(), dim=1)
        loss = (cosine.clamp(min=0) * step.pseudo.weight).mean()
        return Objective(self.coefficient * loss, {"feature_cosine": loss})


class Rotation(nn.Module):
    """Which of four quarter turns each turned image shows."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step) -> Objective:
        logits = step.passes.heads[2]
        loss = cross_entropy(logits, quarters(len(logits) // 4, logits.device))
        return Objective(self.coefficient * loss, {"rotation": loss})


class CRMatchLoss(Member):
    """`heads` holds the weak and strong maps' projections and what is said of the turned images.

    The distance reaches the network through both views; with `weak_gradient` off, through the
    strong one alone.
    """

    def __init__(self, plain: PseudoLabeling, task: Task) -> None:
        super().__init__(plain)
        depth, height, width = task.feature_map
        self.distance = nn.Linear(depth * height * width, task.features)
        self.rotation = perceptron(task.features, task.features, 4)

    def passes(self, student: Network, batch: Batch) -> Passes:
        weak, strong = batch.unlabeled
        some = weak[: len(batch.labels)].detach()
        turns = turned(some.repeat(4, 1, 1, 1), quarters(len(some), some.device))
        if self.weak_gradient:
            labeled, near, far, spun = maps(student, [batch.labeled[0], weak, strong, turns])
        else:
            with torch.no_grad():
                near = student.feature_map(weak)
            labeled, far, spun = maps(student, [batch.labeled[0], strong, turns])
        outputs = [classified(student, part) for part in (labeled, near, far)]
        heads = (
            self.distance(near.flatten(1)),
            self.distance(far.flatten(1)),
            self.rotation(student.pool(spun)),
        )
        return Passes(outputs[0], outputs[1], (outputs[2],), heads)


def quarters(images: int, device: torch.device) -> Tensor:
    """0 for every image, then 1 for every image, then 2, then 3."""
    return torch.arange(4, device=device).repeat_interleave(images)


def maps(network: Network, views: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.split(network.feature_map(torch.cat(views)), [len(view) for view in views])


def classified(network: Network, feature_map: Tensor) -> Output:
    features = network.pool(feature_map)
    return Output(network.classify(features), features)


@dataclass(frozen=True, kw_only=True)
class CRMatch(FixMatch):
    """The images that are turned are as many of the weak views as there are labeled images."""

    about: ClassVar[About] = About("CRMatch", 2022, "same class, but features kept apart")

    distance: Amount = 1.0  # weight of the feature distance
    rotation: Amount = 1.0  # weight of the rotation loss

    def extras(self, task: Task) -> tuple[nn.Module, ...]:
        return FeatureDistance(self.distance), Rotation(self.rotation)

    def build(self, task: Task) -> CRMatchLoss:
        check_square(task, "CRMatch")
        return CRMatchLoss(super().build(task), task)
