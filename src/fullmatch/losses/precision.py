"""What every loss does with its tensors first and last: checked, of enough digits, averaged."""

import torch
from torch import Tensor


def widened(values: Tensor) -> Tensor:
    """The same values in at least float32: bfloat16 rounds 1 - p to 1 for every p below 1/512."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def averaged(rows: Tensor) -> Tensor:
    """Their mean; 0 of none."""
    return rows.sum() / max(rows.numel(), 1)


def check_shape(name: str, given: Tensor, *shape: int) -> None:
    """What is not refused here would be spread over the others without a word."""
    if given.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}; got {tuple(given.shape)}")


def check_tensors(**given: object) -> None:
    """A list would fail later, and not by its name."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor; got {type(value).__name__}")
