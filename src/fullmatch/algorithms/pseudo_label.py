"""Pseudo-Label (Lee, ICML workshop 2013): what the network is sure of counts as labeled."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.passes import apart, ramp
from fullmatch.algorithms.pseudo_labeling import FixedThreshold, Labeler, Passes, usage
from fullmatch.config.limits import Amount, Share
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy


class PseudoLabelLoss(Algorithm):
    """Learns the label on the very pass that gave it; only the labeled pass moves statistics."""

    def __init__(self, spec: "PseudoLabel") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views
        self.labeler = Labeler(FixedThreshold(spec.threshold))

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        labeled = student(batch.labeled[0])
        weak = apart(student, batch.unlabeled[0])
        with torch.no_grad():
            pseudo = self.labeler(Passes(labeled, weak, ()), batch, progress)
        supervised = cross_entropy(labeled.logits, batch.labels)
        consistency = cross_entropy(weak.logits, pseudo.label, pseudo.weight)
        scale = self.spec.coefficient * ramp(progress, self.spec.ramp)
        metrics = {"supervised": supervised, "consistency": consistency}
        return Objective(
            supervised + scale * consistency, metrics | usage(pseudo, batch.hidden_labels)
        )


@dataclass(frozen=True, kw_only=True)
class PseudoLabel:
    """Not offered with EML and ANL: label and prediction are one pass, so k would always be 2."""

    about: ClassVar[About] = About("Pseudo-Label", 2013, "sure predictions count as labels")
    views: ClassVar[Views] = Views(unlabeled=("weak",))
    ratio: ClassVar[int] = 1

    threshold: Share = 0.95
    coefficient: Amount = 1.0  # of the unlabeled loss, once the ramp is up
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def build(self, task: Task) -> PseudoLabelLoss:
        return PseudoLabelLoss(self)
