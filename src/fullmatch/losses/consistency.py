"""Losses that make two predictions agree, and sharpening of the target."""

import torch
from torch import Tensor
from torch.nn import functional as F

from .precision import (
    check_numbers,
    check_rows,
    check_shape,
    check_tensors,
    mask_impossible,
    widen,
    zero_rows,
)

NEVER = -(2**31)  # ignored label; torch's default of -100 would silently leave out rows


def cross_entropy(logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Weighted cross-entropy, averaged over all rows, those of weight 0 included.

    `target` holds labels (N,) int64 or probabilities (N, C). A row of weight 0 adds exactly 0 to
    the value and to every gradient, even if its logits or its target are not finite, or its label
    is -1. Every other row needs a label from 0 to C - 1: no label is ignored, not even -100. A
    class of probability 0 adds 0, even if its logit is -inf. An empty batch gives 0.
    """
    _check(logits, target, weight)
    logits = widen(logits)
    if len(logits) == 0:
        return logits.sum()
    soft = target.ndim == 2
    if weight is not None:
        weight = weight.to(logits.dtype)
        unused = weight == 0
        logits = zero_rows(logits, unused)
        target = zero_rows(target, unused) if soft else target.masked_fill(unused, 0)
    if soft:
        target = target.to(logits.dtype)
        logits = mask_impossible(logits, target)
    if weight is None:
        return F.cross_entropy(logits, target, ignore_index=NEVER)
    losses = F.cross_entropy(logits, target, ignore_index=NEVER, reduction="none")
    return (losses * weight).mean()


def squared_distance(probs_a: Tensor, probs_b: Tensor) -> Tensor:
    """Squared difference, averaged over rows and classes."""
    check_tensors(probs_a=probs_a, probs_b=probs_b)
    if probs_a.shape != probs_b.shape:
        raise ValueError(
            f"probs_b must have the shape of probs_a, {tuple(probs_a.shape)}; "
            f"got {tuple(probs_b.shape)}"
        )
    return (widen(probs_a) - widen(probs_b)).square().sum() / max(probs_a.numel(), 1)


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """Probabilities to the power 1 / temperature, renormalized: sharper below 1."""
    check_tensors(probs=probs)
    check_numbers(temperature=temperature)
    if not temperature > 0:
        raise ValueError(f"temperature must be greater than 0; got {temperature}")
    probs = widen(probs)
    # Relative to the largest, so that a whole row does not underflow at a small temperature.
    powers = (probs / probs.amax(dim=-1, keepdim=True)).pow(1 / temperature)
    return powers / powers.sum(dim=-1, keepdim=True)


def entropy(logits: Tensor) -> Tensor:
    """Mean entropy of the rows' predictions; a class with logit -inf adds 0."""
    check_rows(logits=logits)
    log_p = widen(logits).log_softmax(dim=1)
    return (log_p.exp() * -log_p.masked_fill(log_p == -torch.inf, 0)).sum() / max(len(logits), 1)


def _check(logits: Tensor, target: Tensor, weight: Tensor | None) -> None:
    check_tensors(logits=logits, target=target)
    check_rows(logits=logits)
    rows = len(logits)
    labels = target.dtype == torch.int64 and target.shape == (rows,)
    soft = target.is_floating_point() and target.shape == logits.shape
    if not labels and not soft:
        raise ValueError(
            f"target must be int64 labels of shape ({rows},) or probabilities of shape "
            f"{tuple(logits.shape)}; got {target.dtype} of shape {tuple(target.shape)}"
        )
    if weight is not None:
        check_shape("weight", weight, rows)
