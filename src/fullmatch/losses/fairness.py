"""FreeMatch's fairness loss, meant to keep predictions from concentrating on a few classes."""

from collections.abc import Callable

import torch
from torch import Tensor

from .precision import check_rows, check_shape, check_tensors, widen, zero_rows


def self_adaptive_fairness(
    strong_logits: Tensor,  # (U, C)
    weight: Tensor,  # (U,) 1 where selected, else 0
    mean_probs: Tensor,  # (C,) running mean of the weak predictions
    mean_labels: Tensor,  # (C,) running frequency of their largest class
    total: Callable[[Tensor], Tensor] = lambda value: value,  # the sum over all processes
) -> Tensor:
    """Negative cross-entropy between the running mean prediction and that of the strong views.

    Only selected strong views count. Both means are divided by how often each class is the argmax,
    and renormalized. As published, minimizing it makes the cross-entropy large. 0, with gradient 0,
    if nothing is selected. A row of weight 0 adds exactly 0, even if its logits are not finite.
    """
    check_tensors(strong_logits=strong_logits, weight=weight)
    check_tensors(mean_probs=mean_probs, mean_labels=mean_labels)
    check_rows(strong_logits=strong_logits)
    check_shape("weight", weight, len(strong_logits))
    for name, mean in (("mean_probs", mean_probs), ("mean_labels", mean_labels)):
        check_shape(name, mean, *strong_logits.shape[1:])
    probs = zero_rows(widen(strong_logits), weight == 0).softmax(dim=1)
    selected = weight.to(probs.dtype)
    count = total(selected.sum())
    labels = torch.zeros_like(mean_labels, dtype=probs.dtype)
    labels = total(labels.scatter_add_(0, probs.argmax(dim=1), selected))
    mean = total((selected[:, None] * probs).sum(dim=0)) / count.clamp(min=1)
    target = _per_label(widen(mean_probs), widen(mean_labels))
    current = _per_label(mean, labels / count.clamp(min=1))
    return (target * (current + 1e-12).log()).sum().where(count > 0, 0.0)


def _per_label(probs: Tensor, labels: Tensor) -> Tensor:
    """Return probs / labels as a distribution; 0 for a class without labels."""
    share = torch.where(labels > 0, probs / labels.where(labels > 0, 1.0), 0.0)
    return share / share.sum().clamp(min=torch.finfo(share.dtype).tiny)
