"""Divergences between distributions: Kullback-Leibler, alpha, and between Gaussians."""

import torch
from torch import Tensor

from .precision import (
    check_numbers,
    check_rows,
    check_scalars,
    check_shape,
    check_tensors,
    mask_impossible,
    mean_or_zero,
    widen,
)


def kullback_leibler(logits: Tensor, probs: Tensor) -> Tensor:
    """KL(probs, softmax(logits)) of the rows, averaged.

    A probability of 0 adds 0, even if its logit is -inf.
    """
    check_tensors(logits=logits, probs=probs)
    check_rows(logits=logits)
    if logits.shape != probs.shape:
        raise ValueError(
            f"probs must have the shape of logits, {tuple(logits.shape)}; got {tuple(probs.shape)}"
        )
    probs = widen(probs)
    log_p = mask_impossible(widen(logits), probs).log_softmax(dim=1)
    # 0 log 1 is also 0, but has a finite gradient, unlike 0 log 0.
    own = torch.xlogy(probs, probs.masked_fill(probs == 0, 1))
    return (own - probs * log_p).sum() / max(len(probs), 1)


def alpha_divergence(log_p: Tensor, log_r: Tensor, alpha: float) -> Tensor:
    """Divergence of p from r, averaged over rows: (sum p^a r^(1-a) - 1) / (a (a - 1)).

    Its limits at 1 and 0 are KL(p, r) and KL(r, p). Above 1 it emphasizes classes that are likely
    in p but not in r. A class that is impossible in both (-inf) adds 0.
    """
    check_tensors(log_p=log_p, log_r=log_r)
    if log_p.shape != log_r.shape:
        raise ValueError(
            f"log_r must have the shape of log_p, {tuple(log_p.shape)}; got {tuple(log_r.shape)}"
        )
    check_numbers(alpha=alpha)
    log_p, log_r = widen(log_p), widen(log_r)
    no_p, no_r = log_p == -torch.inf, log_r == -torch.inf
    if alpha == 1:
        return mean_or_zero((log_p.exp() * (log_p - log_r).masked_fill(no_p, 0)).sum(dim=-1))
    if alpha == 0:
        return mean_or_zero((log_r.exp() * (log_r - log_p).masked_fill(no_r, 0)).sum(dim=-1))
    overlap = (alpha * log_p + (1 - alpha) * log_r).masked_fill(no_p & no_r, -torch.inf)
    return mean_or_zero((overlap.exp().sum(dim=-1) - 1) / (alpha * (alpha - 1)))


def power_mean(log_probs: Tensor, order: float) -> Tensor:  # (J, N, C) -> (N, C) log-probabilities
    """The distribution with the smallest sum of alpha divergences of this order to J others.

    Order 1 is their mean, order 0 their renormalized geometric mean.
    """
    check_tensors(log_probs=log_probs)
    check_numbers(order=order)
    log_probs = widen(log_probs)
    if order == 0:
        return log_probs.mean(dim=0).log_softmax(dim=-1)
    # Replaced before the logarithm, whose gradient is NaN where it is infinite.
    never = log_probs == -torch.inf
    never = never.all(dim=0) if order > 0 else never.any(dim=0)
    mean = (order * log_probs).masked_fill(never, 0).logsumexp(dim=0) / order
    return mean.masked_fill(never, -torch.inf).log_softmax(dim=-1)


def skewed_jensen_shannon(
    mean_a: Tensor, variance_a: Tensor, mean_b: Tensor, variance_b: Tensor, skew: Tensor
) -> Tensor:
    """Divergence between two diagonal Gaussians (D,) through their geometric mean.

    `skew` is the weight of b. Summed over dimensions; 0 if both are equal.
    """
    check_tensors(mean_a=mean_a, variance_a=variance_a, mean_b=mean_b, variance_b=variance_b)
    check_shape("variance_a", variance_a, *mean_a.shape)
    check_shape("mean_b", mean_b, *mean_a.shape)
    check_shape("variance_b", variance_b, *mean_a.shape)
    if not isinstance(skew, Tensor) or skew.shape != mean_a.shape:
        check_scalars(skew=skew)
    mean_a, variance_a = widen(mean_a), widen(variance_a)
    mean_b, variance_b = widen(mean_b), widen(variance_b)
    a, b = 1 - skew, skew
    variance = 1 / (a / variance_a + b / variance_b)
    mean = variance * (a * mean_a / variance_a + b * mean_b / variance_b)
    spread = (a * variance_a + b * variance_b) / variance
    volume = variance.log() - a * variance_a.log() - b * variance_b.log()
    shift = (a * (mean - mean_a).square() + b * (mean - mean_b).square()) / variance
    return 0.5 * torch.sum(spread + volume + shift - 1)
