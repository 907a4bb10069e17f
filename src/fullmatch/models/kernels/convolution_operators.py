"""The convolution kernels as operators: their shapes for the compiler, and their gradients.

Not every machine has Triton, which the kernels need, so each operator imports them when it runs.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fullmatch.models.kernels.layout import channels_last
from fullmatch.models.kernels.registry import custom_operator


@custom_operator("convolution")
def convolution(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve x with a 3x3 weight; a float32 weight gets a float32 gradient."""
    from fullmatch.models.kernels import convolution_triton as kernels

    return kernels.convolution(channels_last(x), weight)


@custom_operator("input_gradient")
def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    from fullmatch.models.kernels import convolution_triton as kernels

    return kernels.convolution(channels_last(gradient), weight, flipped=True)


@custom_operator("weight_gradient")
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


def save_inputs(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def convolution_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
    x, weight = ctx.saved_tensors
    x_gradient = input_gradient(gradient, weight) if ctx.needs_input_grad[0] else None
    return x_gradient, weight_gradient(x, gradient)


convolution.register_autograd(convolution_backward, setup_context=save_inputs)


@custom_operator("round_weights")
def round_weights(weights: Sequence[Tensor]) -> list[Tensor]:
    """Round to bfloat16, which autocast would do one by one; so does backward, to float32."""
    return convert(weights, torch.bfloat16)


@custom_operator("widen_gradients")
def widen_gradients(gradients: Sequence[Tensor]) -> list[Tensor]:
    return convert(gradients, torch.float32)


def convert(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    converted = allocate_like(tensors, dtype)
    torch._foreach_copy_(converted, list(tensors))
    return converted


def allocate_like(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]


round_weights.register_fake(lambda weights: allocate_like(weights, torch.bfloat16))
widen_gradients.register_fake(lambda gradients: allocate_like(gradients, torch.float32))
round_weights.register_autograd(lambda ctx, gradients: widen_gradients(gradients))
