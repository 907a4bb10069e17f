"""The precision in which losses are computed, whatever autocast hands them."""

import torch
from torch import Tensor


def widened(values: Tensor) -> Tensor:
    """The same values in at least float32: bfloat16 rounds 1 - p to 1 for every p below 1/512."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
