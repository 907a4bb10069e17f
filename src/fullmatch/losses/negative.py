"""Losses that teach which classes an image does not show."""

from collections.abc import Callable

import torch
from torch import Tensor

from .full import check_logits, log1m_softmax, usable_rows
from .precision import (
    check_rows,
    check_scalars,
    check_shape,
    check_tensors,
    mean_or_zero,
    widen,
    zero_rows,
)

FLOOR = -18.420680743952367  # log of 1e-8: below it, the loss is constant


def low_probability_negative(
    logits: Tensor,  # (U, C), carry the gradient
    probs: Tensor,  # (U, C) of the view that decides which classes are unlikely
    threshold: float = 0.04,
    weight: Tensor | None = None,  # (U,)
) -> Tensor:
    """-log of the total probability of the classes that are not below the threshold.

    Averaged over all rows. A row with every class below the threshold adds 0, and so does a row of
    weight 0, even if its logits are not finite.
    """
    check_tensors(logits=logits, probs=probs)
    check_rows(logits=logits)
    check_shape("probs", probs, *logits.shape)
    check_scalars(threshold=threshold)
    unlikely = probs.detach() < threshold
    uninformative = unlikely.all(dim=1)
    unused = uninformative & ~usable_rows(logits)
    if weight is not None:
        check_shape("weight", weight, len(logits))
        unused = unused | (weight == 0)
    unlikely = unlikely & ~uninformative.unsqueeze(1)
    log_p = zero_rows(widen(logits), unused).log_softmax(dim=1)
    # If only classes with a logit of -inf remain, the gradient of their sum would be NaN.
    remaining = log_p.clamp(min=torch.finfo(log_p.dtype).min)
    remaining = remaining.masked_fill(unlikely, -torch.inf).logsumexp(dim=1).clamp(FLOOR, 0.0)
    losses = -remaining
    return mean_or_zero(losses if weight is None else weight.detach() * losses)


def negative_learning(
    logits: Tensor,  # (U, C)
    negative: Tensor,  # (U, C) bool
    average: Callable[[Tensor], Tensor] = lambda count: count,
) -> Tensor:
    """-log(1 - p) of each row's negative classes, averaged over them, then over the rows with any.

    0, with gradient 0, if no row has a negative class. A row without any adds exactly 0, even if
    its logits are not finite. `average` is the mean of a count over all processes.
    """
    check_tensors(logits=logits, negative=negative)
    check_logits("logits", logits)
    check_shape("negative", negative, *logits.shape)
    entries = negative.to(torch.float32)
    count = entries.sum(dim=1)
    # Masked, not multiplied: 0 times the infinite loss of another class would be NaN.
    loss = -log1m_softmax(zero_rows(logits, count == 0))
    loss = loss.masked_fill(entries == 0, 0)
    loss = (entries * loss).sum(dim=1) / count.clamp(min=1)
    rows = average((count > 0).to(loss.dtype).sum())
    return loss.sum() / rows.clamp(min=torch.finfo(loss.dtype).tiny)
