"""ReMixMatch (Berthelot et al., ICLR 2020): MixMatch with aligned guesses, strong views, turns."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.about import About
from fullmatch.algorithms.alignment import MovingMean, aligned
from fullmatch.algorithms.passes import apart, ramp
from fullmatch.algorithms.rotation import check_square, turned
from fullmatch.augment.mix import draw, mixup
from fullmatch.config.limits import Amount, Positive, Share
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy, sharpen


class ReMixMatchLoss(Algorithm):
    """Only the pass over mixed pictures moves the running statistics."""

    class_prior: Tensor  # (C,)

    def __init__(self, spec: "ReMixMatch", task: Task) -> None:
        super().__init__()
        self.spec, self.views, self.num_classes = spec, spec.views, task.num_classes
        self.predicted = MovingMean(task.num_classes, spec.momentum)
        self.turn = nn.Linear(task.features, 4)
        self.register_buffer("class_prior", torch.tensor(task.class_prior), persistent=False)

    @torch.no_grad()
    def guess(self, student: Network, weak: Tensor) -> Tensor:  # (U, C)
        """The weak prediction, aligned with the labeled classes' frequencies and sharpened."""
        probs = apart(student, weak).logits.float().softmax(dim=1)
        # The average is of predictions as they come, and holds this batch before it divides.
        probs = aligned(probs, self.predicted(probs), self.class_prior)
        return sharpen(probs, self.spec.temperature)

    def rotation(self, student: Network, images: Tensor, chances: Tensor) -> Tensor:
        """How well the head tells by which quarter turn each picture was turned."""
        turns = (4 * chances).long()
        return cross_entropy(self.turn(apart(student, turned(images, turns)).features), turns)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        spec, size = self.spec, len(batch.labels)
        weak, strong, other = batch.unlabeled
        guess = self.guess(student, weak)
        known = F.one_hot(batch.labels, self.num_classes).float()
        images = torch.cat([batch.labeled[0], strong, other, weak])
        targets = torch.cat([known, guess, guess, guess])
        chances = draw(spec.alpha, len(images), images.device, others=len(strong))
        images, targets = mixup(images, targets, chances)
        logits = student(images).logits
        supervised = cross_entropy(logits[:size], targets[:size])
        consistency = cross_entropy(logits[size:], targets[size:])
        unmixed = cross_entropy(apart(student, strong).logits, guess)
        rotation = self.rotation(student, strong, chances.others)
        scale = ramp(progress, spec.ramp)
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
class ReMixMatch:
    """TorchSSL's settings: two strong views, where the paper takes up to eight."""

    about: ClassVar[About] = About(
        "ReMixMatch", 2020, "aligned guesses, strong views, rotations", "mean prediction"
    )
    views: ClassVar[Views] = Views(unlabeled=("weak", "strong", "strong"))
    ratio: ClassVar[int] = 1

    alpha: Positive = 0.75  # of the beta distribution that the mixing weight is drawn from
    temperature: Positive = 0.5  # of the guessed labels; lower is sharper
    momentum: Share = 0.999  # of the mean prediction
    coefficient: Amount = 1.5  # of the mixed unlabeled loss, once the ramp is up
    unmixed: Amount = 0.5  # weight of the first strong view's own loss, with the same ramp
    rotation: Amount = 0.5  # weight of telling quarter turns, without a ramp
    ramp: Share = 1 / 64  # share of the training over which the coefficients rise

    def build(self, task: Task) -> ReMixMatchLoss:
        check_square(task, "ReMixMatch")
        return ReMixMatchLoss(self, task)
