"""Memory layouts that operators and Triton kernels agree on."""

import torch
from torch import Tensor

# Rows of the (5, channels) table that the normalization kernels compute for a batch.
STATISTICS = ("mean", "variance", "scale", "shift", "unbiased variance")


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def can_normalize(channels: int, elements: int) -> bool:
    """Whether the kernels support this shape: channels a power of two, and 32-bit offsets."""
    # One program finishes 8 channels together; more than 1024 were never tried.
    return 8 <= channels <= 1024 and channels & (channels - 1) == 0 and elements < 2**31
