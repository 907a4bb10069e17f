"""Mixup as MixMatch uses it: images and targets blended with a permuted copy of the batch."""

from typing import NamedTuple

import torch
from torch import Tensor


class Chances(NamedTuple):
    """The random numbers of a step that mixes."""

    weight: Tensor  # 0-d, how much of itself every image keeps: one half or more
    partners: Tensor  # (B,) a permutation
    others: Tensor  # (N,) at least 0 and below 1, for what else the step leaves to chance


def draw(alpha: float, count: int, device: torch.device, *, others: int = 0) -> Chances:
    """All in one call, since compiled code does not keep the order of several."""
    if alpha <= 0:
        raise ValueError(f"alpha: given {alpha}, expected a number above 0")
    # Two gamma draws make a beta draw; unlike `distributions.Beta` this needs no look at values.
    # Those of shape 1 are exponential: every order of them is as likely, and 1 - exp(-x) uniform.
    shapes = torch.cat(
        [torch.full((2,), alpha, device=device), torch.ones(count + others, device=device)]
    )
    pair, order, rest = torch.split(torch._standard_gamma(shapes), [2, count, others])
    pair = pair.clamp(min=torch.finfo(pair.dtype).tiny)
    uniform = (-torch.expm1(-rest)).clamp(max=1 - torch.finfo(rest.dtype).eps / 2)
    return Chances(pair.max() / pair.sum(), order.argsort(), uniform)


def mixup(
    images: Tensor,
    targets: Tensor,  # (B, C) probabilities
    chances: Chances,
) -> tuple[Tensor, Tensor]:
    """Blends with one weight of at least one half per batch, so each image stays the main one."""
    weight, partners, _ = chances
    mixed = [weight * part + (1 - weight) * part[partners] for part in (images, targets)]
    return mixed[0], mixed[1]
