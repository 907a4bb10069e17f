"""Dash (Xu et al., ICML 2021): select images whose weak loss is below a falling limit.

The paper takes the first limit from the labeled loss after the warm-up. With few labels that loss
is far below `rho_min` by then, and Dash is FixMatch from the start. So the first limit is the
labeled loss at the start of the warm-up; `measured="end"` is the paper's choice. USB measures it on
the test set, which would leak test labels into training.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabels,
    Step,
)
from fullmatch.config.limits import Amount, Natural, Positive, Share
from fullmatch.core import About, Batch, FallingLimit, Objective, Task
from fullmatch.losses import cross_entropy

MEASURED = 100  # steps at one end of the warm-up that the mean labeled loss covers


class LossLimit(nn.Module):
    """Selects labels whose loss on the weak view is at most rho.

    rho starts at the mean labeled loss.
    """

    steps: Tensor  # () int64, steps so far
    labeled_loss: Tensor  # () mean over some steps of the warm-up
    start: Tensor  # () progress when the warm-up ended

    def __init__(self, spec: "Dash") -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("labeled_loss", torch.zeros(()))
        self.register_buffer("start", torch.zeros(()))

    def rho(self, progress: Tensor) -> Tensor:
        """The limit: divided by gamma after each stretch of training, down to rho_min."""
        spec = self.spec
        # The margin keeps rounding from ending a stretch one step late.
        stretches = ((progress - self.start) / spec.every + 1e-4).floor()
        return (spec.factor * spec.gamma**-stretches * self.labeled_loss).clamp(min=spec.rho_min)

    def warm_up(self, passes: Passes[object], batch: Batch, progress: Tensor) -> Tensor:
        """Whether this step is still warm-up; if so, its labeled loss enters the mean.

        A step in several parts (`training.accumulate`) counts once, with its first part.
        """
        begins = (progress != self.start) | (self.steps == 0)
        step = self.steps + begins - 1
        short = progress < self.spec.longest_warmup
        warming = (step == 0) | ((step < self.spec.warmup) & short)
        loss = distributed.mean(cross_entropy(passes.labeled.logits, batch.labels))
        share = (1 / (step + 1)).clamp(min=1 / MEASURED) * begins
        if self.spec.measured == "start":
            share = share * (step < MEASURED)
        self.labeled_loss.lerp_(loss, share * warming)
        self.start.copy_(torch.where(warming, progress, self.start))
        self.steps.add_(begins)
        return warming

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        warming = self.warm_up(passes, batch, progress)
        logits = passes.weak.logits.detach().float()
        probs = logits.softmax(dim=1)
        label = probs.argmax(dim=1)
        rho = self.rho(progress)
        soft = (logits / self.spec.temperature).softmax(dim=1)
        hard = F.one_hot(label, logits.shape[1]).float()
        target = torch.where(rho > self.spec.rho_min, soft, hard)
        loss = F.cross_entropy(logits, target, reduction="none")
        return PseudoLabels(probs, label, target, ((loss <= rho) & ~warming).float())


class DashLoss(ExtendedPseudoLabeling):
    """Reports the limit `rho` of each step as a metric."""

    def extra_objectives(self, step: Step[object]) -> list[Objective]:
        assert isinstance(self.labeler, LossLimit)
        rho = self.labeler.rho(step.progress)
        return [*super().extra_objectives(step), Objective(torch.zeros_like(rho), {"rho": rho})]


@dataclass(frozen=True, kw_only=True)
class Dash(FixMatch):
    """Warms up on the labels only; full-dash learns its negatives even then."""

    about: ClassVar[About] = About(
        "Dash", 2021, "weak loss under a falling limit", "labeled loss of the warm-up"
    )

    threshold: ClassVar[float] = 0.0  # type: ignore[misc]  # not a field: the limit replaces it
    warmup: Natural = 2048  # steps
    longest_warmup: Share = 0.1  # share of the training after which any warm-up ends
    measured: Literal["start", "end"] = "start"  # where in the warm-up the first limit comes from
    temperature: Positive = 0.5  # of the soft labels; labels are hard once rho is rho_min
    factor: Positive = 1.0001  # the first limit is the labeled loss times this
    gamma: Positive = 1.27  # each fall divides the limit by this
    every: Positive = 10 / 1024  # share of the training between two falls
    rho_min: Amount = 0.05  # a limit of 0.05 equals a threshold of 0.951

    def falling_limit(self, steps: int) -> FallingLimit:
        start = max(1, min(self.warmup, math.ceil(self.longest_warmup * steps)))
        return FallingLimit(start, self.rho_min, early=self.measured == "start")

    def labeler(self, task: Task) -> LossLimit:
        return LossLimit(self)

    def build(self, task: Task) -> DashLoss:
        return DashLoss(super().build(task))
