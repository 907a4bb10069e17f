"""Training on the labels only: the baseline of every semi-supervised method."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy


class SupervisedLoss(Algorithm):
    """Cross-entropy of the labeled images."""

    def __init__(self, views: Views) -> None:
        super().__init__()
        self.views = views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        loss = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        return Objective(loss, {"supervised": loss})


@dataclass(frozen=True, kw_only=True)
class Supervised(Spec):
    """The spec of the labels-only baseline."""

    about: ClassVar[About] = About("-", 0, "the labels only, nothing else")
    views: ClassVar[Views] = Views(unlabeled=())
    ratio: ClassVar[int] = 1

    def build(self, task: Task) -> SupervisedLoss:
        return SupervisedLoss(self.views)
