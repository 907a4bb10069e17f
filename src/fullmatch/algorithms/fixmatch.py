"""FixMatch (Sohn et al., NeurIPS 2020): learn the strong view from the weak one, when sure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from torch import nn

from fullmatch.algorithms.about import About
from fullmatch.algorithms.full import Full
from fullmatch.algorithms.pseudo_labeling import FixedThreshold, Labeler, PseudoLabeling
from fullmatch.config.limits import Amount, Share
from fullmatch.core import Task, Views

# Of the classes: `threshold` itself, scaled down from it class by class, or found from the
# predictions, where `threshold` is but a bound. It says which advice a run can follow.
Thresholds = Literal["given", "by class", "found"]


@dataclass(frozen=True, kw_only=True)
class FixMatch:
    """The family's spec: members override the piece in which they differ."""

    about: ClassVar[About] = About("FixMatch", 2020, "hard labels above a fixed threshold")
    views: ClassVar[Views] = Views()
    ratio: ClassVar[int] = 7
    thresholds: ClassVar[Thresholds] = "given"

    threshold: Share = 0.95
    coefficient: Amount = 1.0  # weight of the unlabeled loss
    full: Full | None = None

    def with_full(self, full: Full | None) -> Self:
        return replace(self, full=full)

    def weighting(self, task: Task) -> nn.Module:
        return FixedThreshold(self.threshold)

    def labeler(self, task: Task) -> nn.Module:
        return Labeler(self.weighting(task))

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return ()

    def build(self, task: Task) -> PseudoLabeling:
        full = () if self.full is None else (self.full.build(),)
        return PseudoLabeling(
            self.labeler(task),
            (*self.extras(task), *full),
            views=self.views,
            coefficient=self.coefficient,
        )
