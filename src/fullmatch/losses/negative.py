"""Losses that teach which classes a picture does not show."""

import torch
from torch import Tensor

from .full import check_logits, log1m_softmax, usable_rows
from .precision import (
    averaged,
    blanked,
    check_rows,
    check_scalars,
    check_shape,
    check_tensors,
    widened,
)

FLOOR = -18.420680743952367  # log of 1e-8: beyond it a loss neither grows nor pulls


def low_probability_negative(
    logits: Tensor,  # (U, C), carry the gradient
    probs: Tensor,  # (U, C) of the view that says which classes are unlikely
    threshold: float = 0.04,
    weight: Tensor | None = None,  # (U,)
) -> Tensor:
    """-log of what is left when all classes below the threshold are ruled out at once.

    Averaged over all rows. A row in which every class is below the threshold says nothing: it
    adds 0, as does a row of weight 0, even where its logits are not finite.
    """
    check_tensors(logits=logits, probs=probs)
    check_rows(logits=logits)
    check_shape("probs", probs, *logits.shape)
    check_scalars(threshold=threshold)
    unlikely = probs.detach() < threshold
    silent = unlikely.all(dim=1)
    unused = silent & ~usable_rows(logits)
    if weight is not None:
        check_shape("weight", weight, len(logits))
        unused = unused | (weight == 0)
    unlikely = unlikely & ~silent.unsqueeze(1)
    log_p = blanked(widened(logits), unused).log_softmax(dim=1)
    # Where only classes of logit -inf are left, their sum would have the gradient NaN.
    left = log_p.clamp(min=torch.finfo(log_p.dtype).min)
    left = left.masked_fill(unlikely, -torch.inf).logsumexp(dim=1).clamp(FLOOR, 0.0)
    lost = -left
    return averaged(lost if weight is None else weight.detach() * lost)


def negative_learning(logits: Tensor, negative: Tensor) -> Tensor:  # (U, C), (U, C) bool
    """-log(1 - p) of each row's negative classes, averaged over them, then over the rows with any.

    0, with gradient 0, where no row has a negative class. A row without any adds exactly 0, even
    where its logits are not finite.
    """
    check_tensors(logits=logits, negative=negative)
    check_logits("logits", logits)
    check_shape("negative", negative, *logits.shape)
    entries = negative.to(torch.float32)
    count = entries.sum(dim=1)
    # Chosen, not multiplied: 0 times the infinite loss of a class not asked about would be NaN.
    loss = -log1m_softmax(blanked(logits, count == 0))
    loss = loss.masked_fill(entries == 0, 0)
    loss = (entries * loss).sum(dim=1) / count.clamp(min=1)
    return loss.sum() / (count > 0).sum().clamp(min=1)
