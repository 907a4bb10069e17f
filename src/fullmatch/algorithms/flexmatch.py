"""FlexMatch (Zhang et al., NeurIPS 2021): classes that lag behind get a lower threshold."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.about import About
from fullmatch.algorithms.fixmatch import FixMatch, Thresholds
from fullmatch.core import Task


class CurriculumThreshold(nn.Module):
    """Scales the threshold of each class by how many images it already labels confidently."""

    last_confident: Tensor  # (N,) the label each image was last sure of; num_classes: none yet

    def __init__(self, threshold: float, task: Task, *, warmup: bool) -> None:
        super().__init__()
        self.threshold, self.warmup, self.num_classes = threshold, warmup, task.num_classes
        none_yet = torch.full((task.num_unlabeled,), task.num_classes)
        self.register_buffer("last_confident", none_yet)

    def learned(self) -> Tensor:  # (C,)
        """Each class's count over the largest, where images without a label count as a class."""
        counts = torch.zeros(self.num_classes + 1, device=self.last_confident.device)
        counts.scatter_add_(
            0, self.last_confident, torch.ones_like(counts[:1]).expand_as(self.last_confident)
        )
        largest = counts.max() if self.warmup else counts[:-1].max()
        return counts[:-1] / largest.clamp(min=1)

    def thresholds(self) -> Tensor:  # (C,)
        learned = self.learned()
        return self.threshold * (learned / (2 - learned))

    def forward(self, probs: Tensor, index: Tensor) -> Tensor:
        confidence, label = probs.max(dim=1)
        weight = (confidence >= self.thresholds()[label]).float()
        self.remember(index, label, confidence >= self.threshold)
        return weight

    def remember(self, index: Tensor, label: Tensor, confident: Tensor) -> None:
        """Write this batch's sure labels; no image stands twice in it, so order is no matter."""
        index = distributed.gather(index)
        label, confident = distributed.gather(label), distributed.gather(confident)
        self.last_confident[index] = torch.where(confident, label, self.last_confident[index])


@dataclass(frozen=True, kw_only=True)
class FlexMatch(FixMatch):
    about: ClassVar[About] = About(
        "FlexMatch", 2021, "lower thresholds for classes lagging behind", "a label an image"
    )
    thresholds: ClassVar[Thresholds] = "by class"

    warmup: bool = True  # images without a confident label hold all thresholds down

    def weighting(self, task: Task) -> nn.Module:
        return CurriculumThreshold(self.threshold, task, warmup=self.warmup)
