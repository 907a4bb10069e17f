"""AlphaMatch (Gong et al., CVPR 2021): all views match one target in alpha divergence.

Reconstructed from the paper's abstract only, since no code is public. The alternation of a
closed-form target with a gradient step, and the divergences, follow from the abstract, and so does
alpha > 1: only then do confident images count for more than in the Kullback-Leibler divergence. The
values of alpha, beta and the number of strong views are our own, so do not expect the published
numbers.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fullmatch.algorithms.alignment import RecentMean, align_to_uniform
from fullmatch.algorithms.passes import run_jointly
from fullmatch.config.limits import Amount, Count, Natural, Number
from fullmatch.core import (
    About,
    Algorithm,
    Batch,
    Network,
    Objective,
    Output,
    Spec,
    Task,
    Views,
    ratio,
)
from fullmatch.errors import UserError
from fullmatch.losses import alpha_divergence, cross_entropy, power_mean


class AlphaMatchLoss(Algorithm):
    """The sum over strong views of D_alpha(target, strong), plus an optional D_beta(weak, target).

    The weak view takes part in the target. The abstract can also be read as pulling the weak view
    toward the target, but with few labels all views then collapse to one class: it is off.
    """

    def __init__(self, spec: "AlphaMatch", task: Task) -> None:
        super().__init__()
        self.spec, self.views = spec, spec.views
        self.recent = RecentMean(task.num_classes, 32) if spec.align else None

    def outputs(self, student: Network, batch: Batch) -> tuple[Output, ...]:
        weak, *strong = batch.unlabeled
        if self.weak_gradient:
            return run_jointly(student, [batch.labeled[0], weak, *strong])
        with torch.no_grad():
            teacher: Output = student(weak)
        labeled, *outputs = run_jointly(student, [batch.labeled[0], *strong])
        return labeled, teacher, *outputs

    @torch.no_grad()
    def target(self, weak: Tensor, strong: Tensor) -> Tensor:  # (U, C), (n, U, C), all logarithms
        """The distribution that minimizes the loss for fixed predictions.

        D_alpha(t, p) is D_(1 - alpha)(p, t): if beta is 1 - alpha, all terms have the same order
        and the minimum is their power mean; otherwise mirror descent starts from it.
        """
        spec = self.spec
        if self.recent is not None:
            weak = align_to_uniform(weak.exp(), self.recent(weak.exp())).clamp(min=1e-12).log()
        target = power_mean(torch.cat([weak[None], strong]), spec.beta)
        if spec.closed_form:
            return target
        for _ in range(spec.descents):
            pull = (spec.beta * (weak - target)).exp() / spec.beta
            push = ((spec.alpha - 1) * (target - strong)).exp().sum(dim=0) / (spec.alpha - 1)
            # Without what all classes share, which normalizing removes; limited to one per step.
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
        correct = (target.argmax(dim=1) == batch.hidden_labels) & known
        return Objective(
            supervised + self.spec.coefficient * consistency,
            {
                "supervised": supervised,
                "consistency": consistency,
                "unlabeled_top1": ratio(correct.sum(), known.sum()),
            },
        )


@dataclass(frozen=True, kw_only=True)
class AlphaMatch(Spec):
    """Without a threshold there are no pseudo-labels for EML or ANL.

    beta is 1 - alpha, for which the target has a closed form.
    """

    about: ClassVar[About] = About("AlphaMatch", 2021, "alpha divergence to one shared target")
    ratio: ClassVar[int] = 7

    coefficient: Amount = 1.0
    alpha: Number = 1.5  # between target and strong views; above 1 confident images count for more
    beta: Number = -0.5  # between weak view and target
    weak_weight: Amount = 0.0  # weight of the weak view's divergence; see AlphaMatchLoss
    strong_views: Count = 2
    align: bool = False  # distribution alignment, which the authors add on CIFAR-100
    descents: Natural = 5  # steps of mirror descent, used only if alpha + beta is not 1
    rate: Amount = 0.25  # step size of the mirror descent

    @property
    def views(self) -> Views:
        return Views(unlabeled=("weak", *["strong"] * self.strong_views))

    @property
    def closed_form(self) -> bool:
        return abs(self.alpha + self.beta - 1) < 1e-9

    def build(self, task: Task) -> AlphaMatchLoss:
        if not self.closed_form and (self.alpha == 1 or self.beta == 0):
            raise UserError(
                "alphamatch needs algorithm.alpha = 1 - algorithm.beta, or else alpha other "
                f"than 1 and beta other than 0; got {self.alpha} and {self.beta}"
            )
        if self.strong_views < 1:
            raise UserError(f"alphamatch needs at least 1 strong view; got {self.strong_views}")
        return AlphaMatchLoss(self, task)
