"""FullMatch (Chen et al., CVPR 2023): entropy meaning loss and adaptive negative learning.

Both can be added to every method of the FixMatch family: `full(FixMatch())` is FullMatch,
`full(FlexMatch())` is FullFlex.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.pseudo_labeling import Step
from fullmatch.config.limits import Amount, check_limits
from fullmatch.core import Objective, ratio
from fullmatch.errors import UserError
from fullmatch.losses import CEILING, adaptive_k, negative_labels
from fullmatch.losses.full import (
    PreparedViews,
    Reduction,
    adaptive_negative_of,
    entropy_meaning_of,
    prepare_views,
)


@dataclass(frozen=True, kw_only=True)
class Full:
    """Settings of the two losses, with every variant that the paper compares."""

    variant: Literal["released", "paper"] = "released"
    entropy_meaning: bool = True
    adaptive_negative: bool = True  # off: all classes except the target are non-target (k is C)
    form: Literal["bce", "ce"] = "bce"  # of the entropy meaning loss
    negatives_on: Literal["all", "selected", "unselected"] = "all"
    alpha: Amount = 1.0  # weight of the adaptive negative loss
    beta: Amount = 1.0  # weight of the entropy meaning loss

    def __post_init__(self) -> None:
        check_limits(self, "algorithm.full.")  # here, since it is also used without a config

    def build(self) -> "FullLosses":
        return FullLosses(self)


class FullLosses(nn.Module):
    """Adds both losses to a host method, on the classes other than its pseudo-labels."""

    def __init__(self, spec: Full) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, step: Step[object]) -> Objective:
        spec, strong = self.spec, step.passes.strong[0].logits
        probs, weight = step.pseudo.probs, step.pseudo.weight
        ceiling = CEILING if spec.variant == "released" else None
        loss = strong.new_zeros((), dtype=torch.float32)
        metrics: dict[str, Tensor] = {}
        negative = torch.zeros_like(probs, dtype=torch.bool)
        if spec.adaptive_negative:
            k = distributed.maximum(adaptive_k(strong, probs))
            negative = negative_labels(probs, k)
            metrics |= {"k": k.float(), **negative_metrics(negative, step.batch.hidden_labels)}
        views = prepare_views(strong, probs, negative)
        if spec.adaptive_negative:
            images = {"all": None, "selected": weight, "unselected": 1 - weight}
            negative_loss = adaptive_negative_of(views, images[spec.negatives_on], ceiling)
            loss = loss + spec.alpha * negative_loss
            metrics["adaptive_negative"] = negative_loss
        if spec.entropy_meaning:
            reduction: Reduction = "active" if spec.variant == "released" else "paper"
            meaning = entropy_meaning_of(
                views, weight, spec.form, reduction, ceiling, distributed.mean
            )
            loss = loss + spec.beta * meaning
            metrics["entropy_meaning"] = meaning
            metrics["non_target_above_half"] = share_above_half(views, weight)
        return Objective(loss, metrics)


@torch.no_grad()
def negative_metrics(negative: Tensor, hidden_labels: Tensor) -> dict[str, Tensor]:
    """Negative classes per image, and the share of them that are not the true class."""
    known = hidden_labels >= 0
    wrong = negative.gather(1, hidden_labels.clamp(min=0)[:, None])[:, 0] & known
    count = (negative.sum(dim=1) * known).sum()
    return {
        "negatives": negative.float().sum(dim=1).mean(),
        "negative_accuracy": ratio(count - wrong.sum(), count),
    }


@torch.no_grad()
def share_above_half(views: PreparedViews, weight: Tensor) -> Tensor:
    """Share of the non-target entries above 1/2, where the gradient of EML has the wrong sign."""
    entries = weight[:, None] * ~(views.target | views.negative)
    high = views.log_p > math.log(0.5)
    return ratio((entries * high).sum(), entries.sum())


@runtime_checkable
class SupportsFull(Protocol):
    """A spec whose pseudo-labels both losses can use: every spec of the FixMatch family."""

    @property
    def full(self) -> Full | None: ...

    def with_full(self, full: Full | None) -> Self: ...


F = TypeVar("F", bound=SupportsFull)


def full(spec: F, **options: Any) -> F:
    """The spec with both losses added: `full(FlexMatch())` is FullFlex."""
    if not isinstance(spec, SupportsFull):
        name = type(spec).__name__
        raise UserError(
            f"{name} has no pseudo-labels, so there is no full-{name.lower()}; "
            "for those that exist see: fullmatch list algorithms"
        )
    return spec.with_full(replace(spec.full or Full(), **options))


def is_full(spec: object) -> bool:
    """Whether both losses are part of this spec."""
    return isinstance(spec, SupportsFull) and spec.full is not None
