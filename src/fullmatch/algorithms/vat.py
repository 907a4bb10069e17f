"""VAT (Miyato et al., TPAMI 2019): no small change of a picture may change its prediction."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.passes import apart, ramp
from fullmatch.config.limits import Amount, Natural, Positive, Share
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import adversarial_perturbation, cross_entropy, entropy, kullback_leibler


class VATLoss(Algorithm):
    """Only the labeled pass moves the running statistics."""

    def __init__(self, spec: "VAT") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        spec, images = self.spec, batch.unlabeled[0]
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        # A change of 1e-6 is lost in bfloat16, so the search for the direction never uses it.
        with torch.autocast(images.device.type, enabled=False):
            logits = apart(student, images).logits
            probs = logits.detach().softmax(dim=1)
            perturbation = adversarial_perturbation(
                lambda changed: apart(student, changed).logits,
                images,
                probs,
                xi=spec.xi,
                epsilon=spec.epsilon,
                iterations=spec.iterations,
            )
        consistency = kullback_leibler(apart(student, images + perturbation).logits, probs)
        uncertainty = entropy(logits)
        scale = spec.coefficient * ramp(progress, spec.ramp)
        return Objective(
            supervised + scale * consistency + spec.entropy * uncertainty,
            {"supervised": supervised, "consistency": consistency, "entropy": uncertainty},
        )


@dataclass(frozen=True, kw_only=True)
class VAT:
    """With entropy minimisation, as TorchSSL has it; the paper's epsilon differs by data set."""

    about: ClassVar[About] = About("VAT", 2019, "resist the most adversarial small change")
    views: ClassVar[Views] = Views(unlabeled=("weak",))
    ratio: ClassVar[int] = 1

    epsilon: Amount = 6.0  # length of the change, in normalised pixels
    # Length of the change that the search differentiates at. The published 1e-6 is lost to rounding
    # in float32, and what it finds still is adversarial; 1e-2 finds the direction of float64.
    xi: Positive = 1e-6
    iterations: Natural = 1
    coefficient: Amount = 0.3  # of the divergence, once the ramp is up
    ramp: Share = 0.4  # share of the training over which the coefficient rises
    entropy: Amount = 0.06  # weight of the entropy of the predictions, without a ramp

    def build(self, task: Task) -> VATLoss:
        return VATLoss(self)
