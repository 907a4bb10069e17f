"""VAT (Miyato et al., TPAMI 2019): predictions resist small adversarial perturbations."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms.passes import linear_ramp, run_separately
from fullmatch.config.limits import Amount, Natural, Positive, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import adversarial_perturbation, cross_entropy, entropy, kullback_leibler


class VATLoss(Algorithm):
    """Only the labeled pass updates the running statistics."""

    def __init__(self, spec: "VAT") -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        spec, images = self.spec, batch.unlabeled[0]
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        # A perturbation of 1e-6 vanishes in bfloat16, so the search runs in full precision.
        with torch.autocast(images.device.type, enabled=False):
            logits = run_separately(student, images).logits
            probs = logits.detach().softmax(dim=1)
            perturbation = adversarial_perturbation(
                lambda perturbed: run_separately(student, perturbed).logits,
                images,
                probs,
                xi=spec.xi,
                epsilon=spec.epsilon,
                iterations=spec.iterations,
                direction=draw_direction(images),
            )
        consistency = kullback_leibler(run_separately(student, images + perturbation).logits, probs)
        uncertainty = entropy(logits)
        scale = spec.coefficient * linear_ramp(progress, spec.ramp)
        return Objective(
            supervised + scale * consistency + spec.entropy * uncertainty,
            {"supervised": supervised, "consistency": consistency, "entropy": uncertainty},
        )


@torch.no_grad()
def draw_direction(images: Tensor) -> Tensor:
    """Where the search starts: the same for an image, however many processes share the batch."""
    processes = distributed.world_size()
    if processes == 1:
        return torch.randn_like(images)
    whole = images.new_empty(processes * len(images), *images.shape[1:])
    whole = whole.contiguous(memory_format=torch.channels_last)  # that of the views
    return distributed.own_rows(torch.randn_like(whole))


@dataclass(frozen=True, kw_only=True)
class VAT(Spec):
    """With entropy minimization, as in TorchSSL; the paper's epsilon depends on the data set."""

    about: ClassVar[About] = About("VAT", 2019, "resist small adversarial perturbations")
    views: ClassVar[Views] = Views(unlabeled=("weak",))
    ratio: ClassVar[int] = 1

    epsilon: Amount = 6.0  # length of the perturbation, in normalized pixels
    # Length of the perturbation at which the search takes the gradient. The published 1e-6 is lost
    # to rounding in float32, yet the result is still adversarial; 1e-2 agrees with float64.
    xi: Positive = 1e-6
    iterations: Natural = 1
    coefficient: Amount = 0.3  # of the divergence, at the end of the ramp
    ramp: Share = 0.4  # share of the training over which the coefficient rises
    entropy: Amount = 0.06  # weight of the entropy of the predictions, without a ramp

    def build(self, task: Task) -> VATLoss:
        return VATLoss(self)
