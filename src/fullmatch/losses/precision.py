"""What every loss does with its tensors first and last: checked, of enough digits, averaged."""

from numbers import Real

import torch
from torch import Tensor


def widened(values: Tensor) -> Tensor:
    """The same values in at least float32: bfloat16 rounds 1 - p to 1 for every p below 1/512."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def averaged(rows: Tensor) -> Tensor:
    """Their mean; 0 of none."""
    return rows.sum() / max(rows.numel(), 1)


def blanked(rows: Tensor, unused: Tensor) -> Tensor:  # (N, C), (N,) bool
    """Zeros in the rows that are not used; masked after a logarithm, NaN reaches the gradient."""
    return rows.masked_fill(unused.unsqueeze(1), 0)


def possible(logits: Tensor, probs: Tensor) -> Tensor:
    """Logits of -inf made finite, yet too low to count, where their probability is 0.

    A class that cannot be and need not be adds nothing; 0 times its logarithm would be NaN.
    """
    lowest = torch.finfo(logits.dtype).min / 2  # half, so that the largest can be subtracted
    return logits.masked_fill((logits == -torch.inf) & (probs == 0), lowest)


def check_shape(name: str, given: Tensor, *shape: int) -> None:
    """What is not refused here would be spread over the others without a word."""
    check_tensors(**{name: given})
    if given.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}; got {tuple(given.shape)}")


def check_tensors(**given: object) -> None:
    """A list would fail later, and not by its name; complex numbers would give a complex loss."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor; got {type(value).__name__}")
        if value.is_complex():
            raise TypeError(f"{name} must hold real numbers; got {value.dtype}")


def check_rows(**given: Tensor) -> None:
    """A row an image: of any other shape, classes and images would be taken for one another."""
    check_tensors(**given)
    for name, rows in given.items():
        if rows.ndim != 2 or not rows.is_floating_point():
            raise ValueError(
                f"{name} must be floating point of shape (N, C); "
                f"got {rows.dtype} of shape {tuple(rows.shape)}"
            )


def check_scalars(**given: object) -> None:
    """Numbers, or tensors that hold one."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            check_numbers(**{name: value})
        elif value.ndim != 0:
            raise ValueError(f"{name} must be a number; got shape {tuple(value.shape)}")


def check_numbers(**given: object) -> None:
    """Of Python, where one decides what is computed: to ask a tensor would wait for the device."""
    for name, value in given.items():
        if isinstance(value, Tensor):
            raise TypeError(f"{name} must be a number of Python; got a tensor, whose item() is one")
        if not isinstance(value, int | float | Real):
            raise TypeError(f"{name} must be a number; got {type(value).__name__}")
