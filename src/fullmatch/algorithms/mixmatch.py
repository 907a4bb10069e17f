"""MixMatch (Berthelot et al., NeurIPS 2019): guess labels from two views, then mix all images."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.passes import linear_ramp, mix_views, run_interleaved, run_separately
from fullmatch.augment.mix import draw_mixup
from fullmatch.config.limits import Amount, Positive, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy, sharpen, squared_distance


def run_mixed(network: Network, images: Tensor, size: int, *, interleaved: bool) -> Tensor:
    """Logits of mixed images, all in one pass or, as in TorchSSL, in chunks of `size`."""
    logits: Tensor
    logits = run_interleaved(network, images, size) if interleaved else network(images).logits
    return logits


class MixMatchLoss(Algorithm):
    """Only the pass over the mixed images updates the running statistics."""

    def __init__(self, spec: "MixMatch", num_classes: int) -> None:
        super().__init__()
        self.spec, self.views, self.num_classes = spec, spec.views, num_classes

    @torch.no_grad()
    def guess(self, student: Network, views: tuple[Tensor, ...]) -> Tensor:  # (U, C)
        """The mean of the views' predictions, sharpened after averaging."""
        probs = [run_separately(student, view).logits.float().softmax(dim=1) for view in views]
        return sharpen(torch.stack(probs).mean(dim=0), self.spec.temperature)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        spec, size = self.spec, len(batch.labels)
        guess = self.guess(student, batch.unlabeled)
        known = F.one_hot(batch.labels, self.num_classes).float()
        views = (batch.labeled[0], *batch.unlabeled)
        count = distributed.world_size() * sum(map(len, views))
        draws = draw_mixup(spec.alpha, count, guess.device)
        images, targets = mix_views(views, (known, *[guess] * len(batch.unlabeled)), draws)
        logits = run_mixed(student, images, size, interleaved=spec.interleave)
        supervised = cross_entropy(logits[:size], targets[:size])
        consistency = squared_distance(logits[size:].float().softmax(dim=1), targets[size:])
        scale = spec.coefficient * linear_ramp(progress, spec.ramp)
        return Objective(
            supervised + scale * consistency,
            {"supervised": supervised, "consistency": consistency},
        )


@dataclass(frozen=True, kw_only=True)
class MixMatch(Spec):
    """Settings of TorchSSL; the paper uses alpha 0.75 and coefficients from 75 to 250."""

    about: ClassVar[About] = About("MixMatch", 2019, "guessed labels, mixed with real ones")
    views: ClassVar[Views] = Views(unlabeled=("weak", "weak"))
    ratio: ClassVar[int] = 1

    alpha: Positive = 0.5  # of the beta distribution that the mixing weight is drawn from
    temperature: Positive = 0.5  # of the guessed labels; lower is sharper
    coefficient: Amount = 100.0  # of the squared distance, at the end of the ramp
    ramp: Share = 0.4  # share of the training over which the coefficient rises
    # Batch statistics per chunk of interleaved images, as in TorchSSL; slower than all at once.
    interleave: bool = False

    def build(self, task: Task) -> MixMatchLoss:
        return MixMatchLoss(self, task.num_classes)
