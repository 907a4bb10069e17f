"""FreeMatch's fairness, meant to keep predictions from crowding into a few classes."""

import torch
from torch import Tensor

from .precision import blanked, check_rows, check_shape, check_tensors, widened


def self_adaptive_fairness(
    strong_logits: Tensor,  # (U, C)
    weight: Tensor,  # (U,) 1 where selected, else 0
    mean_probs: Tensor,  # (C,) running mean of the weak predictions
    mean_labels: Tensor,  # (C,) running frequency of their largest class
) -> Tensor:
    """Minus the cross-entropy of the selected strong views' mean prediction with the running one.

    Both means are divided by how often each class is the largest, and renormalised. As published,
    minimising it makes the cross-entropy large. 0, with gradient 0, where nothing is selected. A
    row of weight 0 adds exactly 0, even where its logits are not finite.
    """
    check_tensors(strong_logits=strong_logits, weight=weight)
    check_tensors(mean_probs=mean_probs, mean_labels=mean_labels)
    check_rows(strong_logits=strong_logits)
    check_shape("weight", weight, len(strong_logits))
    for name, mean in (("mean_probs", mean_probs), ("mean_labels", mean_labels)):
        check_shape(name, mean, *strong_logits.shape[1:])
    probs = blanked(widened(strong_logits), weight == 0).softmax(dim=1)
    selected = weight.to(probs.dtype)
    count = selected.sum()
    labels = torch.zeros_like(mean_labels, dtype=probs.dtype)
    labels.scatter_add_(0, probs.argmax(dim=1), selected)
    mean = (selected[:, None] * probs).sum(dim=0) / count.clamp(min=1)
    wanted = _per_label(widened(mean_probs), widened(mean_labels))
    found = _per_label(mean, labels / count.clamp(min=1))
    return (wanted * (found + 1e-12).log()).sum().where(count > 0, 0.0)


def _per_label(probs: Tensor, labels: Tensor) -> Tensor:
    """probs / labels, 0 for a class without labels, as a distribution."""
    share = torch.where(labels > 0, probs / labels.where(labels > 0, 1.0), 0.0)
    return share / share.sum().clamp(min=torch.finfo(share.dtype).tiny)
