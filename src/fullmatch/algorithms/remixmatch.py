"""ReMixMatch (Berthelot et al., ICLR 2020): MixMatch plus alignment, strong views, rotations."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.alignment import MovingMean, align
from fullmatch.algorithms.mixmatch import run_mixed
from fullmatch.algorithms.passes import linear_ramp, mix_views, run_separately
from fullmatch.algorithms.rotation import check_square, rotate
from fullmatch.augment.mix import draw_mixup
from fullmatch.config.limits import Amount, Positive, Share
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views
from fullmatch.losses import cross_entropy, sharpen


class ReMixMatchLoss(Algorithm):
    """Only the pass over the mixed images updates the running statistics."""

    class_prior: Tensor  # (C,)

    def __init__(self, spec: "ReMixMatch", task: Task) -> None:
        super().__init__()
        self.spec, self.views, self.num_classes = spec, spec.views, task.num_classes
        self.predicted = MovingMean(task.num_classes, spec.momentum)
        self.turn = nn.Linear(task.features, 4)
        self.register_buffer("class_prior", torch.tensor(task.class_prior), persistent=False)

    @torch.no_grad()
    def guess(self, student: Network, weak: Tensor) -> Tensor:  # (U, C)
        """The weak prediction, aligned to the class prior and sharpened."""
        probs = run_separately(student, weak).logits.float().softmax(dim=1)
        # The average is of unaligned predictions and includes this batch.
        probs = align(probs, self.predicted(probs), self.class_prior)
        return sharpen(probs, self.spec.temperature)

    def rotation(self, student: Network, images: Tensor, chances: Tensor) -> Tensor:
        """Cross-entropy of predicting how many quarter turns each image was rotated by."""
        turns = (4 * chances).long()
        features = run_separately(student, rotate(images, turns)).features
        return cross_entropy(self.turn(features), turns)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        spec, size = self.spec, len(batch.labels)
        weak, strong, other = batch.unlabeled
        guess = self.guess(student, weak)
        known = F.one_hot(batch.labels, self.num_classes).float()
        views, processes = (batch.labeled[0], strong, other, weak), distributed.world_size()
        count, others = processes * sum(map(len, views)), processes * len(strong)
        draws = draw_mixup(spec.alpha, count, guess.device, others=others)
        images, targets = mix_views(views, (known, guess, guess, guess), draws)
        logits = run_mixed(student, images, size, interleaved=spec.interleave)
        supervised = cross_entropy(logits[:size], targets[:size])
        consistency = cross_entropy(logits[size:], targets[size:])
        unmixed = cross_entropy(run_separately(student, strong).logits, guess)
        rotation = self.rotation(student, strong, distributed.own_rows(draws.others))
        scale = linear_ramp(progress, spec.ramp)
        unlabeled = spec.coefficient * consistency + spec.unmixed * unmixed
        return Objective(
            supervised + scale * unlabeled + spec.rotation * rotation,
            {
                "supervised": supervised,
                "consistency": consistency,
                "unmixed": unmixed,
                "rotation": rotation,
            },
        )


@dataclass(frozen=True, kw_only=True)
class ReMixMatch(Spec):
    """Settings of TorchSSL: two strong views; the paper uses up to eight."""

    about: ClassVar[About] = About(
        "ReMixMatch", 2020, "aligned guesses, strong views, rotations", "mean prediction"
    )
    views: ClassVar[Views] = Views(unlabeled=("weak", "strong", "strong"))
    ratio: ClassVar[int] = 1

    alpha: Positive = 0.75  # of the beta distribution that the mixing weight is drawn from
    temperature: Positive = 0.5  # of the guessed labels; lower is sharper
    momentum: Share = 0.999  # of the mean prediction
    coefficient: Amount = 1.5  # of the mixed unlabeled loss, at the end of the ramp
    unmixed: Amount = 0.5  # weight of the first strong view's own loss, with the same ramp
    rotation: Amount = 0.5  # weight of the rotation loss, without a ramp
    ramp: Share = 1 / 64  # share of the training over which the coefficients rise
    # Batch statistics per chunk of interleaved images, as in TorchSSL; slower than all at once.
    interleave: bool = False

    def build(self, task: Task) -> ReMixMatchLoss:
        check_square(task, "ReMixMatch")
        return ReMixMatchLoss(self, task)
