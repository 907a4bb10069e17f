"""FullMatch's two losses (entropy meaning, adaptive negative) and the k that both depend on.

Strong logits carry the gradient; of weak logits only the order matters, so they may be
probabilities. A row is left out (rank C, weight 0, gradient 0) if either view is not finite.
Only shapes, dtypes and Python values of arguments are checked, so nothing waits for the device.
"""

import math
from collections.abc import Callable
from numbers import Integral
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .precision import check_numbers, check_tensors, widen

Form = Literal["bce", "ce"]
Reduction = Literal["active", "paper"]


def log1m_softmax(logits: Tensor) -> Tensor:
    """log(1 - softmax(logits)), finite and exact even if a probability rounds to 1.

    -inf only for a class if all others have the logit -inf.
    """
    check_logits("logits", logits)
    log_p = widen(logits).log_softmax(dim=1)
    # The logarithm of 0 would make the gradient of the whole row NaN.
    lowest = torch.finfo(log_p.dtype).min
    log1m_p = _log1m(log_p.clamp(min=lowest))
    return log1m_p.masked_fill(log1m_p <= lowest, -math.inf)


def adaptive_k(strong_logits: Tensor, weak_logits: Tensor) -> Tensor:
    """The smallest k in [2, C] for which every weak label is in the strong view's top k.

    A 0-d int64 tensor. Ties increase k, so a network with constant output gets no negatives.
    With several processes, use the maximum of their ks.
    """
    check_views(strong_logits, weak_logits)
    num_classes = strong_logits.shape[1]
    label = weak_logits.argmax(dim=1, keepdim=True)
    rank = (strong_logits >= strong_logits.gather(1, label)).sum(dim=1)
    rank = rank.masked_fill(~usable_rows(strong_logits, weak_logits), num_classes)
    return rank.amax().clamp(2, num_classes)


def negative_labels(weak_logits: Tensor, k: int | Tensor) -> Tensor:
    """Which classes (U, C) the weak view ranks after its top k.

    A class that ties with the k-th is not negative, whatever its position in the row. An integer k
    outside [2, C] is an error; a tensor is clamped, since reading it would wait for the device.
    """
    check_logits("weak_logits", weak_logits)
    num_classes = weak_logits.shape[1]
    if isinstance(k, Tensor):
        if k.ndim != 0 or k.dtype == torch.bool or k.is_floating_point() or k.is_complex():
            raise ValueError(
                "k must be an integer, or a 0-d integer tensor; "
                f"got {k.dtype} of shape {tuple(k.shape)}"
            )
        # Narrow integer types may overflow, or lack the operations used here.
        place = k.to(torch.int64).clamp(2, num_classes) - 1
    elif isinstance(k, int | Integral) and 2 <= k <= num_classes:
        place = torch.full((), int(k) - 1, device=weak_logits.device)
    else:
        raise ValueError(f"k must be an integer in [2, {num_classes}]; got {k!r}")
    negative = _ranked_after(weak_logits.detach(), place)
    return negative & usable_rows(weak_logits).unsqueeze(1)


def _ranked_after(logits: Tensor, place: Tensor) -> Tensor:
    """Which classes rank after the one at `place` of their row; the best is at place 0."""
    if torch.compiler.is_compiling():
        # Compiling a sort of 100 classes takes more than a minute. Comparing all pairs is as fast
        # in compiled code, where the pairs are never stored.
        better = logits.unsqueeze(1) > logits.unsqueeze(2)
        return better.sum(dim=2) > place
    if logits.device.type == "cpu":
        # Selecting one value per row is several times faster than sorting all. It needs the place
        # as a number, which costs nothing here but would make the host wait for another device.
        from_below = logits.shape[1] - int(place)
        return logits < logits.kthvalue(from_below, dim=1, keepdim=True).values
    best_first = logits.sort(dim=1, descending=True).values
    return logits < best_first.index_select(1, place.reshape(1))


def adaptive_negative(
    strong_logits: Tensor,
    weak_logits: Tensor,
    k: int | Tensor,
    *,
    weight: Tensor | None = None,
    ceiling: float | None = None,
) -> Tensor:
    """-log(1 - p) of the classes ranked after k: summed over classes, averaged over all rows.

    `weight` (U,) multiplies each row; entries with p above `ceiling` are left out.
    """
    views = prepare_views(strong_logits, weak_logits, negative_labels(weak_logits, k))
    return adaptive_negative_of(views, weight, ceiling)


def entropy_meaning(
    strong_logits: Tensor,
    weak_logits: Tensor,
    selected: Tensor,
    k: int | Tensor | None = None,
    *,
    form: Form = "bce",
    reduction: Reduction = "active",
    ceiling: float | None = None,
) -> Tensor:
    """Cross-entropy between each non-target class of the top k and their mean probability.

    `selected` (U,) marks the rows that have a pseudo-label, as bool or as weights; `k=None` means
    all classes. "active" is the mean over the entries, weighted by `selected` (0 if nothing is
    selected); "paper" is their weighted sum divided by U * C. The mean probability has gradient
    too, which increases the target class. Entries with p above `ceiling` are left out.
    """
    check_views(strong_logits, weak_logits)
    check_tensors(selected=selected)
    check_choice("form", form, Form)
    check_choice("reduction", reduction, Reduction)
    none = torch.zeros_like(weak_logits, dtype=torch.bool)
    views = prepare_views(
        strong_logits, weak_logits, none if k is None else negative_labels(weak_logits, k)
    )
    return entropy_meaning_of(views, selected, form, reduction, ceiling)


class PreparedViews(NamedTuple):
    """What the two losses share, so that using both costs little more than one."""

    log_p: Tensor  # (U, C) of the strong view; rows that are left out have logits of 0
    log1m_p: Tensor  # (U, C)
    target: Tensor  # (U, C) bool, the weak view's best class
    negative: Tensor  # (U, C) bool
    usable: Tensor  # (U,) bool


def prepare_views(strong_logits: Tensor, weak_logits: Tensor, negative: Tensor) -> PreparedViews:
    """Compute stable logarithms and the role of each class, for both losses."""
    check_views(strong_logits, weak_logits)
    usable = usable_rows(strong_logits, weak_logits)
    # Replaced before the logarithm: masked after it, NaN would still reach the gradient.
    log_p = widen(strong_logits).masked_fill(~usable.unsqueeze(1), 0).log_softmax(dim=1)
    return PreparedViews(log_p, _log1m(log_p), _is_best(weak_logits), negative, usable)


def adaptive_negative_of(
    views: PreparedViews, weight: Tensor | None, ceiling: float | None
) -> Tensor:
    """`adaptive_negative` of prepared views."""
    entries = _weighted(views, views.negative, "weight", weight, ceiling)
    return (entries * -views.log1m_p).sum() / len(entries)  # negated first, to give 0 and not -0


def entropy_meaning_of(
    views: PreparedViews,
    selected: Tensor,
    form: Form,
    reduction: Reduction,
    ceiling: float | None,
    average: Callable[[Tensor], Tensor] = lambda count: count,
) -> Tensor:
    """`entropy_meaning` of prepared views.

    `average` is the mean of a count over all processes, each of which has a part of the batch.
    """
    log_p, log1m_p = views.log_p, views.log1m_p
    others = ~(views.target | views.negative)
    mean = (log_p.exp() * others).sum(dim=1, keepdim=True) / others.sum(dim=1, keepdim=True)
    # Binary cross-entropy interpolates between log(1 - p) and log p, by the mean.
    loss = -log1m_p.lerp(log_p, mean) if form == "bce" else -mean * log_p
    entries = _weighted(views, others, "selected", selected, ceiling)
    if reduction == "paper":
        return (entries * loss).sum() / loss.numel()
    total = average(entries.sum()).clamp(min=torch.finfo(entries.dtype).tiny)
    return (entries / total * loss).sum()


def usable_rows(*views: Tensor) -> Tensor:
    """Rows whose values and their differences are finite in every view."""
    # If the sum of the magnitudes is finite, so are the values and their differences.
    return torch.stack([widen(view.detach()).abs().sum(dim=1) for view in views]).isfinite().all(0)


def check_logits(name: str, logits: Tensor) -> None:
    """Require floating point of shape (U, C), with at least one row and two classes."""
    check_tensors(**{name: logits})
    fits = logits.ndim == 2 and logits.shape[0] >= 1 and logits.shape[1] >= 2
    if not fits or not logits.is_floating_point():
        raise ValueError(
            f"{name} must be floating point of shape (U, C) with U >= 1 and C >= 2; "
            f"got {logits.dtype} of shape {tuple(logits.shape)}"
        )


def check_views(strong_logits: Tensor, weak_logits: Tensor) -> None:
    """Require two views of the same rows and classes."""
    check_logits("strong_logits", strong_logits)
    check_logits("weak_logits", weak_logits)
    if strong_logits.shape != weak_logits.shape:
        raise ValueError(
            f"weak_logits must have the shape of strong_logits, {tuple(strong_logits.shape)}; "
            f"got {tuple(weak_logits.shape)}"
        )


def check_choice(name: str, value: str, choices: object) -> None:
    """Require one of the values of a Literal."""
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {get_args(choices)}; got {value!r}")


def _weighted(
    views: PreparedViews, entries: Tensor, name: str, weight: Tensor | None, ceiling: float | None
) -> Tensor:
    """The weight (U, C) of each entry, without gradient."""
    entries = entries & views.usable.unsqueeze(1)
    if ceiling is not None:
        check_numbers(ceiling=ceiling)
        if not 0 < ceiling <= 1:
            raise ValueError(f"ceiling must be None or in (0, 1]; got {ceiling}")
        entries = entries & (views.log_p.detach() <= math.log(ceiling))
    if weight is None:
        return entries.to(views.log_p.dtype)
    check_tensors(**{name: weight})
    if weight.shape != views.usable.shape:
        raise ValueError(
            f"{name} must have one value per row, shape {tuple(views.usable.shape)}; "
            f"got {tuple(weight.shape)}"
        )
    # Masked, not multiplied: the weight of a row that is left out may be NaN.
    return weight.detach().to(views.log_p.dtype).unsqueeze(1).masked_fill(~entries, 0)


def _log1m(log_p: Tensor) -> Tensor:
    """log(1 - p) from log p; for the best class, which may be near 1, from all other classes."""
    best = _is_best(log_p)
    others = log_p.masked_fill(best, -math.inf)
    return others.logsumexp(dim=1, keepdim=True).where(best, (-others.exp()).log1p())


def _is_best(scores: Tensor) -> Tensor:
    """Mark the first largest score of each row, as bool (U, C)."""
    classes = torch.arange(scores.shape[1], device=scores.device)
    return classes == scores.argmax(dim=1, keepdim=True)
