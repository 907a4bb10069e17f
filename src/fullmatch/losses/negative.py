"""Losses that teach which classes a picture does not show."""

import torch
from torch import Tensor

from .full import log1m_softmax
from .precision import averaged, check_shape, check_tensors, widened

FLOOR = -18.420680743952367  # log of 1e-8: beyond it a loss neither grows nor pulls


def low_probability_negative(
    logits: Tensor,  # (U, C), carry the gradient
    probs: Tensor,  # (U, C) of the view that says which classes are unlikely
    threshold: float = 0.04,
    weight: Tensor | None = None,  # (U,)
) -> Tensor:
    """-log of what is left when all classes below the threshold are ruled out at once.

    Averaged over all rows. A row in which every class is below the threshold says nothing: it
    adds 0.
    """
    check_tensors(logits=logits, probs=probs)
    check_shape("probs", probs, *logits.shape)
    if weight is not None:
        check_shape("weight", weight, len(logits))
    unlikely = probs.detach() < threshold
    unlikely = unlikely & ~unlikely.all(dim=1, keepdim=True)
    log_p = widened(logits).log_softmax(dim=1)
    left = log_p.masked_fill(unlikely, -torch.inf).logsumexp(dim=1).clamp(FLOOR, 0.0)
    lost = -left
    return averaged(lost if weight is None else weight.detach() * lost)


def negative_learning(logits: Tensor, negative: Tensor) -> Tensor:  # (U, C), (U, C) bool
    """-log(1 - p) of each row's negative classes, averaged over them, then over the rows with any.

    0, with gradient 0, where no row has a negative class.
    """
    check_tensors(logits=logits, negative=negative)
    check_shape("negative", negative, *logits.shape)
    entries = negative.to(torch.float32)
    count = entries.sum(dim=1)
    loss = (entries * -log1m_softmax(logits)).sum(dim=1) / count.clamp(min=1)
    return loss.sum() / (count > 0).sum().clamp(min=1)
