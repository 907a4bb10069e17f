"""Pseudo-Label (Lee, ICML workshop 2013): confident predictions are used as labels."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.passes import linear_ramp, run_separately
from fullmatch.algorithms.pseudo_labeling import FixedThreshold, Labeler, Passes, usage_metrics
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy


class PseudoLabelLoss(Algorithm):
    """Learns each label on the same pass that gave it.

    Only the labeled pass updates the running statistics.
    """

    def __init__(self, spec: "PseudoLabel") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views
        self.labeler = Labeler(FixedThreshold(spec.threshold))

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        labeled = student(batch.labeled[0])
        weak = run_separately(student, batch.unlabeled[0])
        with torch.no_grad():
            pseudo = self.labeler(Passes(labeled, weak, (), None), batch, progress)
        supervised = cross_entropy(labeled.logits, batch.labels)
        consistency = cross_entropy(weak.logits, pseudo.label, pseudo.weight)
        scale = self.spec.coefficient * linear_ramp(progress, self.spec.ramp)
        metrics = {"supervised": supervised, "consistency": consistency}
        return Objective(
            supervised + scale * consistency, metrics | usage_metrics(pseudo, batch.hidden_labels)
        )


@dataclass(frozen=True, kw_only=True)
class PseudoLabel(Spec):
    """Not combined with EML and ANL: label and prediction are one pass, so k is always 2."""

    about: ClassVar[About] = About("Pseudo-Label", 2013, "confident predictions used as labels")
    views: ClassVar[Views] = Views(unlabeled=("weak",))
    ratio: ClassVar[int] = 1

    threshold: Share = 0.95
    coefficient: Amount = 1.0  # of the unlabeled loss, at the end of the ramp
    ramp: Share = 0.4  # share of the training over which the coefficient rises

    def selection_threshold(self) -> float:
        return self.threshold

    def build(self, task: Task) -> PseudoLabelLoss:
        return PseudoLabelLoss(self)
