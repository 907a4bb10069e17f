"""On which devices, and for which tensors, our kernels run."""

import torch
from torch import Tensor

HOPPER = 9  # major compute capability of the GPUs on which the kernels were measured


def is_hopper(device: torch.device) -> bool:
    """Elsewhere the kernels may be slower, or need more shared memory than there is."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == HOPPER


# Same as torch.compiler.assume_constant_result, which would import the whole compiler.
is_hopper._dynamo_marked_constant = True  # type: ignore[attr-defined]


def use_kernels(x: Tensor) -> bool:
    """Whether our kernels process this tensor: compiled bfloat16 code on a Hopper GPU."""
    supported = x.dtype == torch.bfloat16 and torch.compiler.is_compiling()
    return supported and bool(is_hopper(x.device))


def cast_like_autocast(x: Tensor) -> Tensor:
    """Cast images to the dtype in which autocast would pass them to a convolution."""
    kind = x.device.type
    if x.dtype != torch.float32 or x.is_meta or not torch.is_autocast_enabled(kind):
        return x
    return x.to(torch.get_autocast_dtype(kind))


def count_processors(device: torch.device) -> int:
    """Count the device's streaming multiprocessors."""
    if device.type != "cuda":
        return 3  # for Triton's interpreter: small, and a divisor of nothing
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
