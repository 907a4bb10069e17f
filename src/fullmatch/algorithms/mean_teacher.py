"""Mean Teacher (Tarvainen and Valpola, NeurIPS 2017): agree with the average of one's past."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.passes import apart, ramp
from fullmatch.config.limits import Amount, Share
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy, squared_distance


class MeanTeacherLoss(Algorithm):
    """Both networks see the unlabeled views with statistics of the batch, in training mode."""

    def __init__(self, spec: "MeanTeacher") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        first, second = batch.unlabeled
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        with torch.no_grad():
            target = apart(teacher, first).logits.float().softmax(dim=1)
        probs = apart(student, second).logits.float().softmax(dim=1)
        consistency = squared_distance(probs, target)
        scale = self.spec.coefficient * ramp(progress, self.spec.ramp)
        return Objective(
            supervised + scale * consistency,
            {"supervised": supervised, "consistency": consistency},
        )


@dataclass(frozen=True, kw_only=True)
class MeanTeacher:
    """The teacher is the trainer's own moving average, so its decay is `training.ema`."""

    about: ClassVar[About] = About("Mean Teacher", 2017, "agree with the averaged network")
    views: ClassVar[Views] = Views(unlabeled=("weak", "weak"))
    ratio: ClassVar[int] = 1

    coefficient: Amount = 50.0  # of the squared distance, once the ramp is up
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def build(self, task: Task) -> MeanTeacherLoss:
        return MeanTeacherLoss(self)
