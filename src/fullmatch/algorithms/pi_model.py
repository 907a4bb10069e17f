"""Pi-model (Laine and Aila, ICLR 2017): two views of a picture deserve the same prediction."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.passes import apart, ramp
from fullmatch.config.limits import Amount, Share
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy, squared_distance


class PiModelLoss(Algorithm):
    def __init__(self, spec: "PiModel") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        first, second = batch.unlabeled
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        with torch.no_grad():
            target = apart(student, second).logits.float().softmax(dim=1)
        probs = apart(student, first).logits.float().softmax(dim=1)
        consistency = squared_distance(probs, target)
        scale = self.spec.coefficient * ramp(progress, self.spec.ramp)
        return Objective(
            supervised + scale * consistency,
            {"supervised": supervised, "consistency": consistency},
        )


@dataclass(frozen=True, kw_only=True)
class PiModel:
    """As TorchSSL does it, only the first view learns; the original sent gradient to both."""

    about: ClassVar[About] = About("Pi-model", 2017, "two weak views must agree")
    views: ClassVar[Views] = Views(unlabeled=("weak", "weak"))
    ratio: ClassVar[int] = 1

    coefficient: Amount = 10.0  # of the squared distance, once the ramp is up
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def build(self, task: Task) -> PiModelLoss:
        return PiModelLoss(self)
