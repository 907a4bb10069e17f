"""A 3x3 convolution whose weight gradient comes from a kernel of our own where that is quicker."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# (outputs, inputs) of which libraries compute the weight gradient at a third of the speed.
NARROW = {(32, 32), (32, 16)}
WIDEST = 128  # pixels of a row that the kernel takes
HOPPER = 9  # of the generations of GPUs, the one on which the kernel was measured


class Conv3x3(nn.Conv2d):
    """A plain convolution, but for the gradient of its weights in compiled bfloat16 training."""

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1, bias: bool = False) -> None:
        super().__init__(inputs, outputs, 3, stride, padding=1, bias=bias)
        self.narrow = (outputs, inputs) in NARROW and stride == 1 and not bias

    def forward(self, x: Tensor) -> Tensor:
        trained = torch.is_grad_enabled() and torch.compiler.is_compiling() and x.is_cuda
        if not (self.narrow and trained and x.dtype == torch.bfloat16 and x.shape[3] <= WIDEST):
            return super().forward(x)
        result: Tensor = convolution(x, self.weight, self.weight.detach().to(x.dtype))
        return result


@torch.library.custom_op("fullmatch::convolution", mutates_args=())
def convolution(x: Tensor, weight: Tensor, rounded: Tensor) -> Tensor:
    """`rounded` is the weight in x's type; the gradient goes to `weight`, and stays in float32."""
    return channels_last(F.conv2d(x, rounded, padding=1))


@convolution.register_fake
def _(x: Tensor, weight: Tensor, rounded: Tensor) -> Tensor:
    return x.new_empty((x.shape[0], x.shape[2], x.shape[3], weight.shape[0])).permute(0, 3, 1, 2)


@torch.library.custom_op("fullmatch::weight_gradient", mutates_args=())
def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """In float32, from the convolution's input and the gradient of its output."""
    x, gradient = channels_last(x), channels_last(gradient)
    if not x.is_cuda or torch.cuda.get_device_capability(x.device)[0] == HOPPER:
        from fullmatch.models import kernels  # needs Triton, which not every machine has

        return kernels.weight_gradient(x, gradient)
    weight = channels_last(x.new_empty((gradient.shape[1], x.shape[1], 3, 3)))
    found = library_gradients(x, weight, gradient, (False, True))[1]
    return channels_last(found.to(torch.float32))


@weight_gradient.register_fake
def _(x: Tensor, gradient: Tensor) -> Tensor:
    shape = (gradient.shape[1], 3, 3, x.shape[1])
    return x.new_empty(shape, dtype=torch.float32).permute(0, 3, 1, 2)


def keep(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    x, _, rounded = inputs
    ctx.save_for_backward(x, rounded)


def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
    x, rounded = ctx.saved_tensors
    of_x = None
    if ctx.needs_input_grad[0]:
        of_x = library_gradients(x, rounded, gradient, (True, False))[0]
    return of_x, weight_gradient(x, gradient), None


convolution.register_autograd(gradients, setup_context=keep)


def library_gradients(
    x: Tensor, weight: Tensor, gradient: Tensor, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    """Of x and of the weight, as far as wanted."""
    one, none = [1, 1], [0, 0]
    of_x, of_weight, _ = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, one, one, one, False, none, 1, [*wanted, False]
    )
    return of_x, of_weight


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
