"""Helpers of all losses: precision, masking, averaging and argument checks."""

from numbers import Real

import torch
from torch import Tensor


def widen(values: Tensor) -> Tensor:
    """Convert to at least float32: bfloat16 rounds 1 - p to 1 for every p below 1/512."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def mean_or_zero(rows: Tensor) -> Tensor:
    """The mean, or 0 if there are no rows."""
    return rows.sum() / max(rows.numel(), 1)


def zero_rows(rows: Tensor, unused: Tensor) -> Tensor:  # (N, C), (N,) bool
    """Set unused rows to 0, before a logarithm: masked after it, NaN reaches the gradient."""
    return rows.masked_fill(unused.unsqueeze(1), 0)


def mask_impossible(logits: Tensor, probs: Tensor) -> Tensor:
    """Replace logits of -inf by very low finite ones where the target probability is 0.

    Such a class adds nothing to a loss, but 0 times its logarithm would be NaN.
    """
    lowest = torch.finfo(logits.dtype).min / 2  # half, so that softmax can subtract the largest
    return logits.masked_fill((logits == -torch.inf) & (probs == 0), lowest)


def check_shape(name: str, value: Tensor, *shape: int) -> None:
    """Require this shape, since other shapes would be broadcast silently."""
    check_tensors(**{name: value})
    if value.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}; got {tuple(value.shape)}")


def check_tensors(**values: object) -> None:
    """Require real tensors, and name the argument that is not one."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor; got {type(value).__name__}")
        if value.is_complex():
            raise TypeError(f"{name} must hold real numbers; got {value.dtype}")


def check_rows(**values: Tensor) -> None:
    """Require one row per image."""
    check_tensors(**values)
    for name, rows in values.items():
        if rows.ndim != 2 or not rows.is_floating_point():
            raise ValueError(
                f"{name} must be floating point of shape (N, C); "
                f"got {rows.dtype} of shape {tuple(rows.shape)}"
            )


def check_scalars(**values: object) -> None:
    """Require numbers, or tensors that hold one."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            check_numbers(**{name: value})
        elif value.ndim != 0:
            raise ValueError(f"{name} must be a number; got shape {tuple(value.shape)}")


def check_numbers(**values: object) -> None:
    """Require Python numbers for what decides the computation: reading a tensor would wait."""
    for name, value in values.items():
        if isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Python number; got a tensor, so use its item()")
        if not isinstance(value, int | float | Real):
            raise TypeError(f"{name} must be a number; got {type(value).__name__}")
