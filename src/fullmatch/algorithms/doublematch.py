"""DoubleMatch (Wallin et al., ICPR 2022): every strong view also learns the weak view's features.

The pseudo-labels are FixMatch's; a self-supervised loss on all images is added.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.pseudo_labeling import Step
from fullmatch.config.limits import Amount
from fullmatch.core import About, Objective, Task
from fullmatch.losses import cosine_distance


class FeatureAgreement(nn.Module):
    """1 - cosine of the projected strong features and the weak features, over all images."""

    def __init__(self, features: int, coefficient: float) -> None:
        super().__init__()
        self.head = nn.Linear(features, features)
        self.coefficient = coefficient

    def forward(self, step: Step[object]) -> Objective:
        strong = self.head(step.passes.strong[0].features)
        loss = cosine_distance(strong, step.passes.weak.features.detach())
        return Objective(self.coefficient * loss, {"feature_distance": loss})


@dataclass(frozen=True, kw_only=True)
class DoubleMatch(FixMatch):
    """`features` is the authors' w_s, which depends on the data set and the number of labels.

    Their values are in `experiment/published_settings.py`.
    """

    about: ClassVar[About] = About("DoubleMatch", 2022, "weak features taught to every strong view")

    features: Amount = 1.0  # weight of the feature loss

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (FeatureAgreement(task.features, self.features),)
