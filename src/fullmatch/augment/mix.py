"""Mixup as MixMatch uses it: images and targets blended with a permuted copy of the batch."""

import torch
from torch import Tensor


def mixup(
    images: Tensor,
    targets: Tensor,  # (B, C) probabilities
    alpha: float,
    permutation: Tensor | None = None,  # (B,) partners; drawn when not given
) -> tuple[Tensor, Tensor]:
    """Blends with one weight of at least one half per batch, so each image stays the main one."""
    if alpha <= 0:
        raise ValueError(f"alpha: given {alpha}, expected a number above 0")
    # Two gamma draws make a beta draw; unlike `distributions.Beta` this needs no look at values.
    gamma = torch._standard_gamma(torch.full((2,), alpha, device=images.device))
    gamma = gamma.clamp(min=torch.finfo(gamma.dtype).tiny)
    weight = gamma.max() / gamma.sum()
    if permutation is None:
        permutation = torch.rand(len(images), device=images.device).argsort()
    mixed = [weight * part + (1 - weight) * part[permutation] for part in (images, targets)]
    return mixed[0], mixed[1]
