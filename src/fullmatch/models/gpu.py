"""What kernels of our own ask of a device, and of the images they are given."""

import torch
from torch import Tensor

HOPPER = 9  # the generation of GPUs on which the kernels were measured


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def measured_on(device: torch.device) -> bool:
    """Elsewhere the kernels may be slower, or need more shared memory than there is."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == HOPPER


def kernels_for(x: Tensor) -> bool:
    """Whether kernels of our own take such images: in compiled bfloat16 code, where measured."""
    able = x.dtype == torch.bfloat16 and torch.compiler.is_compiling()
    return able and bool(measured_on(x.device))


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 3  # for Triton's interpreter: few, and a number that divides nothing
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
