"""FlexMatch (Zhang et al., NeurIPS 2021): lower thresholds for classes that lag behind."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.core import About, Task, Thresholds


class CurriculumThreshold(nn.Module):
    """Scales the threshold of each class by how many images have it as a confident label."""

    last_confident: Tensor  # (N,) last confident label of each image; num_classes: none yet

    def __init__(self, threshold: float, task: Task, *, warmup: bool) -> None:
        super().__init__()
        self.threshold, self.warmup, self.num_classes = threshold, warmup, task.num_classes
        none_yet = torch.full((task.num_unlabeled,), task.num_classes)
        self.register_buffer("last_confident", none_yet)

    def learned(self) -> Tensor:  # (C,)
        """Each class's count divided by the largest; images without a label count as a class."""
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
        """Write this batch's confident labels; no image is in it twice, so order is irrelevant."""
        index = distributed.gather(index)
        label, confident = distributed.gather(label), distributed.gather(confident)
        self.last_confident[index] = torch.where(confident, label, self.last_confident[index])


@dataclass(frozen=True, kw_only=True)
class FlexMatch(FixMatch):
    """FixMatch with a threshold per class, which rises as the class is learned."""

    about: ClassVar[About] = About(
        "FlexMatch", 2021, "lower thresholds for classes lagging behind", "one label per image"
    )
    thresholds: ClassVar[Thresholds] = "per class"

    warmup: bool = True  # images without a confident label lower all thresholds

    def weighting(self, task: Task) -> nn.Module:
        return CurriculumThreshold(self.threshold, task, warmup=self.warmup)
