"""CRMatch (Fan et al., IJCV 2022): views share their class but keep different features.

FixMatch's labels make the classifier invariant; a loss on the feature maps and a head that predicts
rotations keep the features equivariant. Follows USB; the paper's own code was not available.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import perceptron
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabeling,
    Step,
)
from fullmatch.algorithms.rotation import check_square, rotate
from fullmatch.config.limits import Amount
from fullmatch.core import About, Batch, Network, Objective, Output, Task
from fullmatch.losses import cross_entropy


class CRMatchHeads(NamedTuple):
    """Projections of the weak and strong feature maps, and logits of the rotations."""

    weak: Tensor  # (U, D)
    strong: Tensor  # (U, D)
    rotations: Tensor  # (4 L, 4)


class FeatureDistance(nn.Module):
    """Cosine of the two views' projected maps, if positive, over the selected images."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step[CRMatchHeads]) -> Objective:
        heads = step.passes.heads
        cosine = F.cosine_similarity(heads.weak.float(), heads.strong.float(), dim=1)
        loss = (cosine.clamp(min=0) * step.pseudo.weight).mean()
        return Objective(self.coefficient * loss, {"feature_cosine": loss})


class RotationLoss(nn.Module):
    """Cross-entropy of predicting how many quarter turns each image was rotated by."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step[CRMatchHeads]) -> Objective:
        logits = step.passes.heads.rotations
        loss = cross_entropy(logits, rotation_labels(len(logits) // 4, logits.device))
        return Objective(self.coefficient * loss, {"rotation": loss})


class CRMatchLoss(ExtendedPseudoLabeling):
    """The feature distance has gradient through both views.

    With `weak_gradient` off it has gradient through the strong view only.
    """

    def __init__(self, plain: PseudoLabeling, task: Task) -> None:
        super().__init__(plain)
        depth, height, width = task.feature_map
        self.distance = nn.Linear(depth * height * width, task.features)
        self.rotation = perceptron(task.features, task.features, 4)

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[CRMatchHeads]:
        images, (weak, strong) = batch.labeled[0], batch.unlabeled
        some = weak[: len(batch.labels)].detach()
        rotated = rotate(some.repeat(4, 1, 1, 1), rotation_labels(len(some), some.device))
        labeler = student if teacher is None else teacher
        if self.weak_gradient and labeler is student:
            maps = feature_maps(student, [images, weak, strong, rotated])
            labeled_map, weak_map, strong_map, rotated_map = maps
        else:
            with torch.no_grad():
                weak_map = labeler.feature_map(weak)
            maps = feature_maps(student, [images, strong, rotated])
            labeled_map, strong_map, rotated_map = maps
        outputs = [
            classify_map(network, one)
            for network, one in ((student, labeled_map), (labeler, weak_map), (student, strong_map))
        ]
        heads = CRMatchHeads(
            self.distance(weak_map.flatten(1)),
            self.distance(strong_map.flatten(1)),
            self.rotation(student.pool(rotated_map)),
        )
        return Passes(outputs[0], outputs[1], (outputs[2],), heads)


def rotation_labels(images: int, device: torch.device) -> Tensor:
    """0 for every image, then 1 for every image, then 2, then 3."""
    return torch.arange(4, device=device).repeat_interleave(images)


def feature_maps(network: Network, views: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.split(network.feature_map(torch.cat(views)), [len(view) for view in views])


def classify_map(network: Network, feature_map: Tensor) -> Output:
    features = network.pool(feature_map)
    return Output(network.classify(features), features)


@dataclass(frozen=True, kw_only=True)
class CRMatch(FixMatch):
    """Rotates as many weak views per batch as there are labeled images."""

    about: ClassVar[About] = About("CRMatch", 2022, "same class, but features kept apart")

    distance: Amount = 1.0  # weight of the feature distance
    rotation: Amount = 1.0  # weight of the rotation loss

    def extras(self, task: Task) -> tuple[nn.Module, ...]:
        return FeatureDistance(self.distance), RotationLoss(self.rotation)

    def build(self, task: Task) -> CRMatchLoss:
        check_square(task, "CRMatch")
        return CRMatchLoss(super().build(task), task)
