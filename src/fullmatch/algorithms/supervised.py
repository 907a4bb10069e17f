"""Training on the labels alone: what every semi-supervised method is measured against."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy


class SupervisedLoss(Algorithm):
    def __init__(self, views: Views) -> None:
        super().__init__()
        self.views = views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        loss = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        return Objective(loss, {"supervised": loss})


@dataclass(frozen=True, kw_only=True)
class Supervised:
    about: ClassVar[About] = About("-", 0, "the labels alone, nothing else")
    views: ClassVar[Views] = Views(unlabeled=())
    ratio: ClassVar[int] = 1

    def build(self, task: Task) -> SupervisedLoss:
        return SupervisedLoss(self.views)
