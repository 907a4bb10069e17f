"""FullMatch's whole objective as one module, for your own training loop."""

import math
from numbers import Integral
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from .consistency import cross_entropy
from .full import (
    PreparedViews,
    Reduction,
    adaptive_k,
    adaptive_negative_of,
    check_choice,
    check_views,
    entropy_meaning_of,
    negative_labels,
    prepare_views,
)
from .precision import check_scalars, check_tensors, widen

Variant = Literal["released", "paper"]

# The square of FixMatch's threshold, 0.95; used with any threshold.
CEILING = 0.9025


class FullMatchTerms(NamedTuple):
    """The objective, its four parts before alpha and beta, and metrics, all on the device."""

    total: Tensor
    supervised: Tensor
    consistency: Tensor
    adaptive_negative: Tensor
    entropy_meaning: Tensor
    metrics: dict[str, Tensor]  # selected: share of images; k; negatives: classes per image


class FullMatchLoss(nn.Module):
    """Supervised + FixMatch + alpha * adaptive negative + beta * entropy meaning; stateless.

    "released" averages entropy meaning over its own entries and leaves out those with p > 0.9025,
    as in the authors' code; "paper" divides by U * C and leaves out nothing, as in the paper.
    """

    def __init__(
        self,
        num_classes: int,
        threshold: float = 0.95,
        alpha: float = 1,
        beta: float = 1,
        variant: Variant = "released",
    ) -> None:
        super().__init__()
        if not isinstance(num_classes, int | Integral):
            raise TypeError(f"num_classes must be an integer; got {num_classes!r}")
        if num_classes < 2:
            raise ValueError(f"num_classes must be at least 2; got {num_classes}")
        check_scalars(threshold=threshold, alpha=alpha, beta=beta)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be in [0, 1]; got {threshold}")
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number; got {value}")
        check_choice("variant", variant, Variant)
        self.num_classes = num_classes
        self.threshold = threshold
        self.alpha = alpha
        self.beta = beta
        self.variant = variant

    def forward(
        self,
        labeled_logits: Tensor,  # (L, C)
        labels: Tensor,  # (L,) int64
        weak_logits: Tensor,  # (U, C), never differentiated
        strong_logits: Tensor,  # (U, C)
        k: int | Tensor | None = None,  # None: of this batch; or the maximum of all ranks
    ) -> FullMatchTerms:
        check_views(strong_logits, weak_logits)
        self._check_classes(labeled_logits=labeled_logits, strong_logits=strong_logits)
        weak_logits = weak_logits.detach()
        if k is None:
            k = adaptive_k(strong_logits, weak_logits)
        views = prepare_views(strong_logits, weak_logits, negative_labels(weak_logits, k))
        confidence, label = widen(weak_logits).softmax(dim=1).max(dim=1)
        selected = (confidence >= self.threshold) & views.usable
        supervised = cross_entropy(labeled_logits, labels)
        consistency = cross_entropy(strong_logits, label, selected)
        negative, meaning = self._full_losses(views, selected)
        return FullMatchTerms(
            total=supervised + consistency + self.alpha * negative + self.beta * meaning,
            supervised=supervised,
            consistency=consistency,
            adaptive_negative=negative,
            entropy_meaning=meaning,
            metrics={
                "selected": selected.float().mean(),
                "k": torch.as_tensor(k, device=labels.device).long().clamp(2, self.num_classes),
                "negatives": views.negative.sum(dim=1).float().mean(),
            },
        )

    def _check_classes(self, **logits: Tensor) -> None:
        for name, rows in logits.items():
            check_tensors(**{name: rows})
            if rows.ndim != 2 or rows.shape[1] != self.num_classes:
                raise ValueError(
                    f"{name} must have {self.num_classes} classes, (rows, {self.num_classes}); "
                    f"got shape {tuple(rows.shape)}"
                )

    def _full_losses(self, views: PreparedViews, selected: Tensor) -> tuple[Tensor, Tensor]:
        """Adaptive negative and entropy meaning, in this variant."""
        released = self.variant == "released"
        reduction: Reduction = "active" if released else "paper"
        ceiling = CEILING if released else None
        return (
            adaptive_negative_of(views, None, ceiling),
            entropy_meaning_of(views, selected, "bce", reduction, ceiling),
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_classes}, threshold={self.threshold}, alpha={self.alpha}, "
            f"beta={self.beta}, variant={self.variant!r}"
        )
