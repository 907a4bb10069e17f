"""A 3x3 convolution that runs on kernels of our own where those are quicker than a library's."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fullmatch.models.kernels.device import channels_last, kernels_for, operator, rounded

NARROW = {(32, 32), (32, 16)}  # (outputs, inputs) that libraries compute at half the speed
THIN = (16, 4)  # (outputs, inputs) of a first convolution, its channels filled up to four


class Conv3x3(nn.Conv2d):
    """A plain convolution, but for narrow ones in compiled bfloat16 code."""

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1, bias: bool = False) -> None:
        super().__init__(inputs, outputs, 3, stride, padding=1, bias=bias)
        self.narrow = (outputs, inputs) in NARROW and stride == 1 and not bias

    def forward(self, x: Tensor) -> Tensor:
        if not (self.narrow and kernels_for(x)):
            return super().forward(x)
        result: Tensor = convolution(x, self.weight)
        return result


class Stem(nn.Conv2d):
    """A first convolution, of so few channels that libraries have nothing quick for it.

    The kernels read four, of which the last may be zero. They have no gradient of images.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = False) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=bias)
        self.thin = outputs == THIN[0] and inputs <= THIN[1] and not bias

    def forward(self, x: Tensor) -> Tensor:
        x = rounded(x)
        if not (self.thin and kernels_for(x)) or x.requires_grad:
            return super().forward(x)
        spare = (0, 0, 0, 0, 0, THIN[1] - self.in_channels)
        result: Tensor = convolution(F.pad(x, spare), F.pad(self.weight, spare))
        return result


def left_to_library(layer: nn.Module) -> TypeGuard[nn.Conv2d]:
    return isinstance(layer, nn.Conv2d) and not (isinstance(layer, Conv3x3) and layer.narrow)


# The kernels need Triton, which not every machine has, so each operator imports them when it runs.


@operator("convolution")
def convolution(x: Tensor, weight: Tensor) -> Tensor:
    """The weight may have more digits than x; its gradient keeps them."""
    from fullmatch.models.kernels import convolution_triton as kernels

    return kernels.convolution(channels_last(x), weight)


@operator("input_gradient")
def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    from fullmatch.models.kernels import convolution_triton as kernels

    return kernels.convolution(channels_last(gradient), weight, flipped=True)


@operator("weight_gradient")
def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    from fullmatch.models.kernels import weight_gradient_triton as kernels

    return kernels.weight_gradient(channels_last(x), channels_last(gradient))


@convolution.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty((x.shape[0], x.shape[2], x.shape[3], weight.shape[0])).permute(0, 3, 1, 2)


@input_gradient.register_fake
def _(gradient: Tensor, weight: Tensor) -> Tensor:
    count, _, height, width = gradient.shape
    return gradient.new_empty((count, height, width, weight.shape[1])).permute(0, 3, 1, 2)


@weight_gradient.register_fake
def _(x: Tensor, gradient: Tensor) -> Tensor:
    shape = (gradient.shape[1], 3, 3, x.shape[1])
    return x.new_empty(shape, dtype=torch.float32).permute(0, 3, 1, 2)


def keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
    x, weight = ctx.saved_tensors
    of_x = input_gradient(gradient, weight) if ctx.needs_input_grad[0] else None
    return of_x, weight_gradient(x, gradient)


convolution.register_autograd(gradients, setup_context=keep)


@operator("round_weights")
def round_weights(weights: Sequence[Tensor]) -> list[Tensor]:
    """To bfloat16, as autocast does one by one; the backward pass widens all gradients at once."""
    return converted(weights, torch.bfloat16)


@operator("widen_gradients")
def widen_gradients(gradients: Sequence[Tensor]) -> list[Tensor]:
    return converted(gradients, torch.float32)


def converted(tensors: Sequence[Tensor], kind: torch.dtype) -> list[Tensor]:
    out = alike(tensors, kind)
    torch._foreach_copy_(out, list(tensors))
    return out


def alike(tensors: Sequence[Tensor], kind: torch.dtype) -> list[Tensor]:
    return [torch.empty_like(tensor, dtype=kind) for tensor in tensors]


round_weights.register_fake(lambda weights: alike(weights, torch.bfloat16))
widen_gradients.register_fake(lambda gradients: alike(gradients, torch.float32))
round_weights.register_autograd(lambda ctx, gradients: widen_gradients(gradients))
