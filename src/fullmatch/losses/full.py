"""FullMatch's two losses (entropy meaning, adaptive negative) and the k that both depend on.

Strong logits carry the gradient; of weak logits only the order counts, so probabilities may stand
there too. A row is left out (rank C, weight 0, gradient 0) where either view is not finite.
Arguments are checked by shape, dtype and Python value alone, so that nothing waits for the device.
"""

import math
from numbers import Integral
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .precision import check_numbers, check_tensors, widened

Form = Literal["bce", "ce"]
Reduction = Literal["active", "paper"]


def log1m_softmax(logits: Tensor) -> Tensor:
    """log(1 - softmax(logits)), finite and exact even where a probability rounds to 1.

    -inf only for a class beside which all others have the logit -inf.
    """
    check_logits("logits", logits)
    log_p = widened(logits).log_softmax(dim=1)
    # The logarithm of nothing, taken as such, would make the whole row's gradient NaN.
    lowest = torch.finfo(log_p.dtype).min
    log1m_p = _log1m(log_p.clamp(min=lowest))
    return log1m_p.masked_fill(log1m_p <= lowest, -math.inf)


def adaptive_k(strong_logits: Tensor, weak_logits: Tensor) -> Tensor:
    """The smallest k of [2, C] at which every weak label is among its strong view's k best.

    A 0-d int64 tensor. Ties count against k, so an undecided network gets no negatives at all.
    Over several processes, take the maximum of their ks.
    """
    check_views(strong_logits, weak_logits)
    num_classes = strong_logits.shape[1]
    label = weak_logits.argmax(dim=1, keepdim=True)
    rank = (strong_logits >= strong_logits.gather(1, label)).sum(dim=1)
    rank = rank.masked_fill(~usable_rows(strong_logits, weak_logits), num_classes)
    return rank.amax().clamp(2, num_classes)


def negative_labels(weak_logits: Tensor, k: int | Tensor) -> Tensor:
    """Which classes (U, C) the weak view ranks after its k best.

    A class that ties with the k-th best is not negative, whatever its position in the row. An
    integer k outside [2, C] is an error; a tensor is clamped, since reading it would wait for the
    device.
    """
    check_logits("weak_logits", weak_logits)
    num_classes = weak_logits.shape[1]
    if isinstance(k, Tensor):
        if k.ndim != 0 or k.dtype == torch.bool or k.is_floating_point() or k.is_complex():
            raise ValueError(
                "k must be an integer, or a 0-d integer tensor; "
                f"got {k.dtype} of shape {tuple(k.shape)}"
            )
        # Of narrow integers some cannot count the classes, others cannot be reckoned with.
        place = k.to(torch.int64).clamp(2, num_classes) - 1
    elif isinstance(k, int | Integral) and 2 <= k <= num_classes:
        place = torch.full((), int(k) - 1, device=weak_logits.device)
    else:
        raise ValueError(f"k must be an integer in [2, {num_classes}]; got {k!r}")
    negative = _ranked_after(weak_logits.detach(), place)
    return negative & usable_rows(weak_logits).unsqueeze(1)


def _ranked_after(logits: Tensor, place: Tensor) -> Tensor:
    """Which classes are worse than the one at that place of their row, the best being at 0."""
    if torch.compiler.is_compiling():
        # To compile a sort of 100 classes takes more than a minute. Pairs of classes are as quick,
        # and never stored, which they would be elsewhere.
        better = logits.unsqueeze(1) > logits.unsqueeze(2)
        return better.sum(dim=2) > place
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
    pair = prepare(strong_logits, weak_logits, negative_labels(weak_logits, k))
    return adaptive_negative_of(pair, weight, ceiling)


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
    """Cross-entropy of each non-target class among the k best against their mean probability.

    `selected` (U,) says which rows have a pseudo-label, as bool or as weights; `k=None` means all
    classes. "active" is the mean over the entries, weighted by `selected` (0 where nothing is
    selected); "paper" is their weighted sum over U * C. The mean probability is differentiated
    too: that is what pulls the target class up. Entries with p above `ceiling` are left out.
    """
    check_views(strong_logits, weak_logits)
    check_tensors(selected=selected)
    check_choice("form", form, Form)
    check_choice("reduction", reduction, Reduction)
    none = torch.zeros_like(weak_logits, dtype=torch.bool)
    pair = prepare(
        strong_logits, weak_logits, none if k is None else negative_labels(weak_logits, k)
    )
    return entropy_meaning_of(pair, selected, form, reduction, ceiling)


class Pair(NamedTuple):
    """What the two losses share, so that using both costs little more than one."""

    log_p: Tensor  # (U, C) of the strong view, 0 logits in rows left out
    log1m_p: Tensor  # (U, C)
    target: Tensor  # (U, C) bool, the weak view's best class
    negative: Tensor  # (U, C) bool
    usable: Tensor  # (U,) bool


def prepare(strong_logits: Tensor, weak_logits: Tensor, negative: Tensor) -> Pair:
    """Both losses' common ground: stable logarithms and the role of each class in its row."""
    check_views(strong_logits, weak_logits)
    usable = usable_rows(strong_logits, weak_logits)
    # Replaced before the logarithm: a mask after it would still let NaN into the gradient.
    log_p = widened(strong_logits).masked_fill(~usable.unsqueeze(1), 0).log_softmax(dim=1)
    return Pair(log_p, _log1m(log_p), _is_best(weak_logits), negative, usable)


def adaptive_negative_of(pair: Pair, weight: Tensor | None, ceiling: float | None) -> Tensor:
    """`adaptive_negative` of a pair already prepared."""
    entries = _weighted(pair, pair.negative, "weight", weight, ceiling)
    return (entries * -pair.log1m_p).sum() / len(entries)  # so that nothing is 0, never -0


def entropy_meaning_of(
    pair: Pair, selected: Tensor, form: Form, reduction: Reduction, ceiling: float | None
) -> Tensor:
    """`entropy_meaning` of a pair already prepared."""
    log_p, log1m_p = pair.log_p, pair.log1m_p
    others = ~(pair.target | pair.negative)
    mean = (log_p.exp() * others).sum(dim=1, keepdim=True) / others.sum(dim=1, keepdim=True)
    # Binary cross-entropy is the point between log(1 - p) and log p that lies at the mean.
    loss = -log1m_p.lerp(log_p, mean) if form == "bce" else -mean * log_p
    entries = _weighted(pair, others, "selected", selected, ceiling)
    if reduction == "paper":
        return (entries * loss).sum() / loss.numel()
    total = entries.sum().clamp(min=torch.finfo(entries.dtype).tiny)
    return (entries / total * loss).sum()


def usable_rows(*views: Tensor) -> Tensor:
    """Rows whose values, and the distances between them, are finite in every view."""
    # Where the sum of the magnitudes is finite, so are they, and what lies between them.
    return (
        torch.stack([widened(view.detach()).abs().sum(dim=1) for view in views]).isfinite().all(0)
    )


def check_logits(name: str, logits: Tensor) -> None:
    """Floating point of shape (U, C), with something to rank."""
    check_tensors(**{name: logits})
    fits = logits.ndim == 2 and logits.shape[0] >= 1 and logits.shape[1] >= 2
    if not fits or not logits.is_floating_point():
        raise ValueError(
            f"{name} must be floating point of shape (U, C) with U >= 1 and C >= 2; "
            f"got {logits.dtype} of shape {tuple(logits.shape)}"
        )


def check_views(strong_logits: Tensor, weak_logits: Tensor) -> None:
    """Two views of the same rows and classes."""
    check_logits("strong_logits", strong_logits)
    check_logits("weak_logits", weak_logits)
    if strong_logits.shape != weak_logits.shape:
        raise ValueError(
            f"weak_logits must have the shape of strong_logits, {tuple(strong_logits.shape)}; "
            f"got {tuple(weak_logits.shape)}"
        )


def check_choice(name: str, given: str, choices: object) -> None:
    """One of the words of a Literal."""
    if given not in get_args(choices):
        raise ValueError(f"{name} must be one of {get_args(choices)}; got {given!r}")


def _weighted(
    pair: Pair, entries: Tensor, name: str, weight: Tensor | None, ceiling: float | None
) -> Tensor:
    """The weight (U, C) of each entry: constants, which no gradient reaches."""
    entries = entries & pair.usable.unsqueeze(1)
    if ceiling is not None:
        check_numbers(ceiling=ceiling)
        if not 0 < ceiling <= 1:
            raise ValueError(f"ceiling must be None or in (0, 1]; got {ceiling}")
        entries = entries & (pair.log_p.detach() <= math.log(ceiling))
    if weight is None:
        return entries.to(pair.log_p.dtype)
    check_tensors(**{name: weight})
    if weight.shape != pair.usable.shape:
        raise ValueError(
            f"{name} must have one value a row, shape {tuple(pair.usable.shape)}; "
            f"got {tuple(weight.shape)}"
        )
    # Chosen, not multiplied: a weight made from the logits of a row left out may be NaN.
    return weight.detach().to(pair.log_p.dtype).unsqueeze(1).masked_fill(~entries, 0)


def _log1m(log_p: Tensor) -> Tensor:
    """log(1 - p) from log p, by what the other classes hold for the one that may be near 1."""
    best = _is_best(log_p)
    rest = log_p.masked_fill(best, -math.inf)
    return rest.logsumexp(dim=1, keepdim=True).where(best, (-rest.exp()).log1p())


def _is_best(scores: Tensor) -> Tensor:
    """Where each row's first largest score stands, as bool (U, C)."""
    classes = torch.arange(scores.shape[1], device=scores.device)
    return classes == scores.argmax(dim=1, keepdim=True)
