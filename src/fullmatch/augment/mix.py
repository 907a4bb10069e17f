"""Mixup as in MixMatch: images and targets blended with a permutation of the batch."""

from typing import NamedTuple

import torch
from torch import Tensor


class MixupDraws(NamedTuple):
    """The random numbers of a step with mixup."""

    weight: Tensor  # 0-d, share of the image itself: one half or more
    partners: Tensor  # (B,) a permutation
    others: Tensor  # (N,) uniform in [0, 1), for other uses in the step


def draw_mixup(alpha: float, count: int, device: torch.device, *, others: int = 0) -> MixupDraws:
    """Draw everything in one call, since compiled code does not preserve the order of several."""
    if alpha <= 0:
        raise ValueError(f"alpha must be greater than 0; got {alpha}")
    # Two gamma draws make a beta draw; unlike `distributions.Beta` this does not read values.
    # Gamma draws of shape 1 are exponential: their order is random, and 1 - exp(-x) is uniform.
    shapes = torch.cat(
        [torch.full((2,), alpha, device=device), torch.ones(count + others, device=device)]
    )
    pair, order, remaining = torch.split(torch._standard_gamma(shapes), [2, count, others])
    pair = pair.clamp(min=torch.finfo(pair.dtype).tiny)
    uniform = (-torch.expm1(-remaining)).clamp(max=1 - torch.finfo(remaining.dtype).eps / 2)
    return MixupDraws(pair.max() / pair.sum(), order.argsort(), uniform)


def mixup(
    images: Tensor,
    targets: Tensor,  # (B, C) probabilities
    draws: MixupDraws,
) -> tuple[Tensor, Tensor]:
    """Blend with one weight per batch; it is at least one half, so each image dominates."""
    weight, partners, _ = draws
    mixed = [weight * rows + (1 - weight) * rows[partners] for rows in (images, targets)]
    return mixed[0], mixed[1]
