"""FullMatch's whole objective as one module, for people with a training loop of their own."""

import math
from numbers import Integral
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from .consistency import cross_entropy
from .full import (
    Reduction,
    adaptive_k,
    adaptive_negative_of,
    check_choice,
    check_views,
    entropy_meaning_of,
    negative_labels,
    prepare,
)
from .precision import check_scalars, check_tensors, widened

Variant = Literal["released", "paper"]

# The square of FixMatch's threshold, 0.95; it stays where another threshold is used.
CEILING = 0.9025


class FullMatchTerms(NamedTuple):
    """The objective, its four parts before alpha and beta, and what happened; all on the device."""

    total: Tensor
    supervised: Tensor
    consistency: Tensor
    adaptive_negative: Tensor
    entropy_meaning: Tensor
    metrics: dict[str, Tensor]  # selected: share of images; k; negatives: classes per image


class FullMatchLoss(nn.Module):
    """Supervised + FixMatch + alpha * adaptive negative + beta * entropy meaning; keeps no state.

    "released" averages entropy meaning over its own entries and leaves out those with p > 0.9025,
    as the authors' code does; "paper" divides by U * C and leaves out nothing, as printed.
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
        k: int | Tensor | None = None,  # None: of this batch; else say, the largest of all ranks
    ) -> FullMatchTerms:
        check_views(strong_logits, weak_logits)
        for name, logits in (("labeled_logits", labeled_logits), ("strong_logits", strong_logits)):
            check_tensors(**{name: logits})
            if logits.ndim != 2 or logits.shape[1] != self.num_classes:
                raise ValueError(
                    f"{name} must have {self.num_classes} classes, (rows, {self.num_classes}); "
                    f"got shape {tuple(logits.shape)}"
                )
        weak_logits = weak_logits.detach()
        if k is None:
            k = adaptive_k(strong_logits, weak_logits)
        pair = prepare(strong_logits, weak_logits, negative_labels(weak_logits, k))
        confidence, label = widened(weak_logits).softmax(dim=1).max(dim=1)
        selected = (confidence >= self.threshold) & pair.usable

        released = self.variant == "released"
        reduction: Reduction = "active" if released else "paper"
        ceiling = CEILING if released else None
        supervised = cross_entropy(labeled_logits, labels)
        consistency = cross_entropy(strong_logits, label, selected)
        negative = adaptive_negative_of(pair, None, ceiling)
        meaning = entropy_meaning_of(pair, selected, "bce", reduction, ceiling)
        return FullMatchTerms(
            total=supervised + consistency + self.alpha * negative + self.beta * meaning,
            supervised=supervised,
            consistency=consistency,
            adaptive_negative=negative,
            entropy_meaning=meaning,
            metrics={
                "selected": selected.float().mean(),
                "k": torch.as_tensor(k, device=labels.device).long().clamp(2, self.num_classes),
                "negatives": pair.negative.sum(dim=1).float().mean(),
            },
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_classes}, threshold={self.threshold}, alpha={self.alpha}, "
            f"beta={self.beta}, variant={self.variant!r}"
        )
