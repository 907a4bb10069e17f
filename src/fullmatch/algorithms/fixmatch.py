"""FixMatch (Sohn et al., NeurIPS 2020): confident weak predictions label the strong view."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import nn

from fullmatch.algorithms.full import Full
from fullmatch.algorithms.pseudo_labeling import FixedThreshold, Labeler, PseudoLabeling
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Spec, Task, Views


@dataclass(frozen=True, kw_only=True)
class FixMatch(Spec):
    """The spec of the family: other methods override the parts in which they differ."""

    about: ClassVar[About] = About("FixMatch", 2020, "hard labels above a fixed threshold")
    views: ClassVar[Views] = Views()
    ratio: ClassVar[int] = 7

    threshold: Share = 0.95
    coefficient: Amount = 1.0  # weight of the unlabeled loss
    full: Full | None = None

    def with_full(self, full: Full | None) -> Self:
        return replace(self, full=full)

    def selection_threshold(self) -> float | None:
        return self.threshold or None  # 0 where something else selects

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
