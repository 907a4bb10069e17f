"""Pi-model (Laine and Aila, ICLR 2017): two views of an image get the same prediction."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.passes import linear_ramp, run_separately
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy, squared_distance


class PiModelLoss(Algorithm):
    """Cross-entropy, plus the squared distance between two views with a weight that ramps up."""

    def __init__(self, spec: "PiModel") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        first, second = batch.unlabeled
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        with torch.no_grad():
            target = run_separately(student, second).logits.float().softmax(dim=1)
        probs = run_separately(student, first).logits.float().softmax(dim=1)
        consistency = squared_distance(probs, target)
        scale = self.spec.coefficient * linear_ramp(progress, self.spec.ramp)
        return Objective(
            supervised + scale * consistency,
            {"supervised": supervised, "consistency": consistency},
        )


@dataclass(frozen=True, kw_only=True)
class PiModel(Spec):
    """As in TorchSSL, only the first view has gradient; in the original both have."""

    about: ClassVar[About] = About("Pi-model", 2017, "two weak views must agree")
    views: ClassVar[Views] = Views(unlabeled=("weak", "weak"))
    ratio: ClassVar[int] = 1

    coefficient: Amount = 10.0  # of the squared distance, at the end of the ramp
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def build(self, task: Task) -> PiModelLoss:
        return PiModelLoss(self)
