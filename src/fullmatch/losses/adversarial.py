"""The small perturbation of an image to which its prediction is most sensitive."""

from collections.abc import Callable
from numbers import Integral

import torch
from torch import Tensor

from .consistency import cross_entropy
from .precision import check_rows, check_scalars, check_tensors


def normalize_rows(rows: Tensor) -> Tensor:
    """Scale each row to length 1 over all its dimensions; a row of zeros stays zero."""
    flat = rows.flatten(1)
    tiny = torch.finfo(rows.dtype).tiny
    # First by the largest entry: squares of a gradient near 1e-20 would underflow in float32.
    flat = flat / flat.abs().amax(dim=1, keepdim=True).clamp(min=tiny)
    length = flat.square().sum(dim=1, keepdim=True).sqrt()
    return (flat / length.clamp(min=tiny)).view_as(rows)


def adversarial_perturbation(
    predict: Callable[[Tensor], Tensor],  # images -> logits
    images: Tensor,
    probs: Tensor,  # (B, C), predictions of the unperturbed images
    *,
    xi: float = 1e-6,
    epsilon: float = 6.0,
    iterations: int = 1,
    direction: Tensor | None = None,
) -> Tensor:
    """A perturbation of length epsilon per image, by power iteration; without gradient.

    `torch.func.grad` differentiates only with respect to the perturbation, so the parameters get
    no gradient, and it can be traced, unlike `torch.autograd.grad`. `predict` must not write to
    buffers: give batch norms copies of theirs. The search starts at `direction`, or at random.
    """
    check_tensors(images=images, probs=probs)
    if images.ndim < 2 or not images.is_floating_point():
        raise ValueError(
            "images must be floating point of shape (B, ...); "
            f"got {images.dtype} of shape {tuple(images.shape)}"
        )
    check_rows(probs=probs)
    if len(probs) != len(images):
        raise ValueError(f"probs must have {len(images)} rows, one per image; got {len(probs)}")
    if not callable(predict):
        raise TypeError(f"predict must be a function from images to logits; got {predict!r}")
    if not isinstance(iterations, int | Integral):
        raise TypeError(f"iterations must be an integer; got {iterations!r}")
    if iterations < 0:
        raise ValueError(f"iterations must be 0 or more; got {iterations}")
    check_scalars(xi=xi, epsilon=epsilon)

    def divergence(perturbation: Tensor) -> Tensor:
        return cross_entropy(predict(images + perturbation), probs)

    with torch.no_grad():
        direction = torch.randn_like(images) if direction is None else direction
        for _ in range(iterations):
            direction = torch.func.grad(divergence)(xi * normalize_rows(direction))
        return epsilon * normalize_rows(direction)
