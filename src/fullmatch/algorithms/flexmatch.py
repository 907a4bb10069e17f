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
    counts: Tensor  # (C + 1,) int64, how many images have each of them

    def __init__(self, threshold: float, task: Task, *, warmup: bool) -> None:
        super().__init__()
        self.threshold, self.warmup, self.num_classes = threshold, warmup, task.num_classes
        # Two bytes per image: there may be many.
        dtype = torch.int16 if task.num_classes < 2**15 else torch.int32
        none_yet = torch.full((task.num_unlabeled,), task.num_classes, dtype=dtype)
        self.register_buffer("last_confident", none_yet)
        counts = torch.zeros(task.num_classes + 1, dtype=torch.int64)
        self.register_buffer("counts", counts, persistent=False)
        self.derive_memory()

    def derive_memory(self) -> None:
        """Count all labels; after that, each step counts only what it changes."""
        self.counts.copy_(self.last_confident.long().bincount(minlength=len(self.counts)))

    def learned(self) -> Tensor:  # (C,)
        """Each class's count divided by the largest; images without a label count as a class."""
        counts = self.counts.float()
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
        before = self.last_confident[index].long()
        now = torch.where(confident, label, before)
        self.last_confident[index] = now.to(self.last_confident.dtype)
        one = torch.ones_like(now)
        self.counts.scatter_add_(0, before, -one).scatter_add_(0, now, one)


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
