"""NS3L (Chen et al., ICML 2020): rule out all unlikely classes of an image together."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from fullmatch.algorithms.pseudo_labeling import FixedThreshold, Labeler, PseudoLabeling, Step
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Objective, Spec, Task, Views
from fullmatch.losses import low_probability_negative


class UnlikelyClasses(nn.Module):
    """An extra loss that rules out, in the strong view, classes unlikely in the weak view."""

    def __init__(self, threshold: float, coefficient: float) -> None:
        super().__init__()
        self.threshold, self.coefficient = threshold, coefficient

    def forward(self, step: Step[object]) -> Objective:
        loss = low_probability_negative(
            step.passes.strong[0].logits, step.pseudo.probs, self.threshold
        )
        negatives = (step.pseudo.probs < self.threshold).float().sum(dim=1).mean()
        return Objective(
            self.coefficient * loss, {"low_probability_negative": loss, "negatives": negatives}
        )


@dataclass(frozen=True, kw_only=True)
class NS3L(Spec):
    """FixMatch with the negative loss added; the paper adds it to VAT and MixMatch.

    It is an alternative to adaptive negative learning, so there is no full-ns3l. In a method of
    your own use `losses.low_probability_negative`, or `UnlikelyClasses` as an extra.
    """

    about: ClassVar[About] = About("NS3L", 2020, "rules out all unlikely classes together")
    views: ClassVar[Views] = Views()
    ratio: ClassVar[int] = 7

    threshold: Share = 0.95
    coefficient: Amount = 1.0  # weight of the unlabeled loss
    negative_threshold: Share = 0.04  # classes less probable than this are negatives
    negative_coefficient: Amount = 1.0

    def selection_threshold(self) -> float:
        return self.threshold

    def build(self, task: Task) -> PseudoLabeling:
        unlikely = UnlikelyClasses(self.negative_threshold, self.negative_coefficient)
        labeler = Labeler(FixedThreshold(self.threshold))
        return PseudoLabeling(labeler, (unlikely,), views=self.views, coefficient=self.coefficient)
