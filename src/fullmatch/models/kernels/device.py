"""What kernels of our own ask of a device, and of the images they are given."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

HOPPER = 9  # the generation of GPUs on which the kernels were measured
OPERATORS: list[str] = []  # all that `operator` has made
Function = Callable[..., Any]


def measured_on(device: torch.device) -> bool:
    """Elsewhere the kernels may be slower, or need more shared memory than there is."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == HOPPER


# As torch.compiler.assume_constant_result does, which would import the whole compiler with us.
measured_on._dynamo_marked_constant = True  # type: ignore[attr-defined]


def kernels_for(x: Tensor) -> bool:
    """Whether kernels of our own take such images: in compiled bfloat16 code, where measured."""
    able = x.dtype == torch.bfloat16 and torch.compiler.is_compiling()
    return able and bool(measured_on(x.device))


def rounded(x: Tensor) -> Tensor:
    """As autocast would hand images to a library's convolution."""
    kind = x.device.type
    if x.dtype != torch.float32 or x.is_meta or not torch.is_autocast_enabled(kind):
        return x
    return x.to(torch.get_autocast_dtype(kind))


def operator(name: str, mutates_args: Sequence[str] = ()) -> Callable[[Function], CustomOpDef]:
    """A function that compiled code calls as it is."""
    OPERATORS.append(name)
    return torch.library.custom_op(f"fullmatch::{name}", mutates_args=mutates_args)


def introduce_operators() -> None:
    """Registers them with the compiler, which would otherwise do it when it meets them.

    Before torch 2.13 it then describes their operands for a log, and the operands of those: a text
    that doubles with every block of a residual network, and takes minutes to write.
    """
    if torch.__version__ >= (2, 13):  # type: ignore[operator]
        return
    from torch._inductor import lowering
    from torch._library.utils import get_layout_constraint_tag

    for name in OPERATORS:
        known = getattr(torch.ops.fullmatch, name).default
        if known not in lowering.lowerings:
            tag = get_layout_constraint_tag(known, with_default=True)
            constraint = lowering.tag_to_layout_constraint(tag)
            lowering.make_fallback(known, layout_constraint=constraint)  # type: ignore[no-untyped-call]


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 3  # for Triton's interpreter: few, and a number that divides nothing
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
