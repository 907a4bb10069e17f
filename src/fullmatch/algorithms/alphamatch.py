"""AlphaMatch (Gong et al., CVPR 2021): all views agree, in alpha divergence, with one distribution.

Reconstructed from the paper's abstract alone: no code is public and no copy could be read. The
alternation of a closed-form target and a gradient step, and the divergences, follow from it; the
values of alpha, beta and the number of strong views are ours, so published numbers cannot be
expected of it.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.alignment import RecentMean, evened
from fullmatch.algorithms.passes import joint
from fullmatch.config.limits import Amount, Count, Natural, Number
from fullmatch.core import Algorithm, Batch, Network, Objective, Output, Task, Views, ratio
from fullmatch.errors import UserError
from fullmatch.losses import alpha_divergence, cross_entropy, power_mean


class AlphaMatchLoss(Algorithm):
    """The sum over strong views of D_alpha(target, strong), plus D_beta(weak, target) if wanted.

    The weak view has a say in the target. That it should also be pulled towards it is a possible
    reading, but then all views settle on one class when labels are few: it is off.
    """

    def __init__(self, spec: "AlphaMatch", task: Task) -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views
        self.recent = RecentMean(task.num_classes, 32) if spec.align else None

    def outputs(self, student: Network, batch: Batch) -> tuple[Output, ...]:
        weak, *strong = batch.unlabeled
        if self.weak_gradient:
            return joint(student, [batch.labeled[0], weak, *strong])
        with torch.no_grad():
            teacher: Output = student(weak)
        labeled, *rest = joint(student, [batch.labeled[0], *strong])
        return labeled, teacher, *rest

    @torch.no_grad()
    def target(self, weak: Tensor, strong: Tensor) -> Tensor:  # (U, C), (n, U, C), all logarithms
        """The distribution that minimises the loss while the predictions stand still.

        D_alpha(t, p) is D_(1 - alpha)(p, t): where beta is 1 - alpha all terms are of one order,
        and the minimum is their power mean; else it starts a mirror descent.
        """
        spec = self.spec
        if self.recent is not None:
            weak = evened(weak.exp(), self.recent(weak.exp())).clamp(min=1e-12).log()
        target = power_mean(torch.cat([weak[None], strong]), spec.beta)
        if spec.closed_form:
            return target
        for _ in range(spec.descents):
            pull = (spec.beta * (weak - target)).exp() / spec.beta
            push = ((spec.alpha - 1) * (target - strong)).exp().sum(dim=0) / (spec.alpha - 1)
            # What all classes share normalising would remove; the rest moves by one at most.
            step = pull - push
            step = step - (target.exp() * step).sum(dim=1, keepdim=True)
            target = (target + (spec.rate * step).clamp(-1, 1)).log_softmax(dim=1)
        return target

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        labeled, *outputs = self.outputs(student, batch)
        weak, *strong = [output.logits.float().log_softmax(dim=1) for output in outputs]
        target = self.target(weak, torch.stack(strong))
        supervised = cross_entropy(labeled.logits, batch.labels)
        parts = [alpha_divergence(target, view, self.spec.alpha) for view in strong]
        consistency = torch.stack(parts).sum()
        if self.spec.weak_weight:
            weak_part = alpha_divergence(weak, target, self.spec.beta)
            consistency = consistency + self.spec.weak_weight * weak_part
        known = batch.hidden_labels >= 0
        right = (target.argmax(dim=1) == batch.hidden_labels) & known
        return Objective(
            supervised + self.spec.coefficient * consistency,
            {
                "supervised": supervised,
                "consistency": consistency,
                "unlabeled_top1": ratio(right.sum(), known.sum()),
            },
        )


@dataclass(frozen=True, kw_only=True)
class AlphaMatch:
    """There is no threshold, hence no pseudo-label that EML or ANL could attach to."""

    about: ClassVar[About] = About("AlphaMatch", 2021, "alpha divergence to one shared target")
    ratio: ClassVar[int] = 7

    coefficient: Amount = 1.0
    alpha: Number = 0.5  # between target and strong views
    beta: Number = 0.5  # between weak view and target
    weak_weight: Amount = 0.0  # of the weak view's own divergence; see AlphaMatchLoss
    strong_views: Count = 2
    align: bool = False  # distribution alignment, which the authors add on CIFAR-100
    descents: Natural = 5  # mirror descent, needed only where alpha + beta is not 1
    rate: Amount = 0.25

    @property
    def views(self) -> Views:
        return Views(unlabeled=("weak", *["strong"] * self.strong_views))

    @property
    def closed_form(self) -> bool:
        return abs(self.alpha + self.beta - 1) < 1e-9

    def build(self, task: Task) -> AlphaMatchLoss:
        if not self.closed_form and (self.alpha == 1 or self.beta == 0):
            raise UserError(
                "alphamatch needs alpha other than 1 and beta other than 0, or 1 - beta"
            )
        if self.strong_views < 1:
            raise UserError(f"alphamatch needs at least 1 strong view; got {self.strong_views}")
        return AlphaMatchLoss(self, task)
