"""Mean Teacher (Tarvainen and Valpola, NeurIPS 2017): agree with the averaged network."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.passes import linear_ramp, run_separately
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy, squared_distance


class MeanTeacherLoss(Algorithm):
    """Both networks process the unlabeled views in training mode, with batch statistics."""

    def __init__(self, spec: "MeanTeacher") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        first, second = batch.unlabeled
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        with torch.no_grad():
            target = run_separately(teacher, first).logits.float().softmax(dim=1)
        probs = run_separately(student, second).logits.float().softmax(dim=1)
        consistency = squared_distance(probs, target)
        scale = self.spec.coefficient * linear_ramp(progress, self.spec.ramp)
        return Objective(
            supervised + scale * consistency,
            {"supervised": supervised, "consistency": consistency},
        )


@dataclass(frozen=True, kw_only=True)
class MeanTeacher(Spec):
    """The teacher is the trainer's moving average, so its decay is `training.ema`."""

    about: ClassVar[About] = About("Mean Teacher", 2017, "agree with the averaged network")
    views: ClassVar[Views] = Views(unlabeled=("weak", "weak"))
    ratio: ClassVar[int] = 1

    coefficient: Amount = 50.0  # of the squared distance, at the end of the ramp
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def build(self, task: Task) -> MeanTeacherLoss:
        return MeanTeacherLoss(self)
