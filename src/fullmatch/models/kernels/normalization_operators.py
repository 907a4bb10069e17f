"""The normalization kernels as operators: their shapes for the compiler, and their gradients.

Not every machine has Triton, which the kernels need, so each operator imports them when it runs.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fullmatch.models.kernels.convolution_operators import input_gradient, weight_gradient
from fullmatch.models.kernels.layout import STATISTICS, channels_last
from fullmatch.models.kernels.registry import custom_operator


@custom_operator("normalize")
def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """Return the leaky ReLU of x's batch norm, and the table of `STATISTICS`."""
    from fullmatch.models.kernels import normalization_triton as kernels

    return kernels.normalize(channels_last(x), None, weight, bias, eps, slope)[1:]


@custom_operator("add_and_normalize")
def add_and_normalize(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x + residual, and what `normalize` returns for this sum."""
    from fullmatch.models.kernels import normalization_triton as kernels

    return kernels.normalize(channels_last(x), channels_last(residual), weight, bias, eps, slope)


@custom_operator("convolve_and_normalize")
def convolve_and_normalize(
    x: Tensor,
    filters: Tensor,
    residual: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x convolved with filters + residual, and what `normalize` returns for this sum."""
    from fullmatch.models.kernels import convolution_triton as convolution_kernels
    from fullmatch.models.kernels import normalization_triton as kernels

    other = None if residual is None else channels_last(residual)
    total, sums = convolution_kernels.summed_convolution(channels_last(x), filters, other)
    return total, *kernels.normalize_summed(total, sums, weight, bias, eps, slope)


@custom_operator("move_statistics", mutates_args=("means", "variances"))
def move_statistics(
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    statistics: Sequence[Tensor],
    momenta: Sequence[float],
) -> None:
    """Move running statistics toward the batch means and unbiased variances of many layers."""
    rows = (STATISTICS.index("mean"), STATISTICS.index("unbiased variance"))
    batch = [table[row] for row in rows for table in statistics]
    torch._foreach_lerp_([*means, *variances], batch, [*momenta, *momenta])


@custom_operator("normalization_gradients")
def normalization_gradients(
    x: Tensor, gradient: Tensor, other: Tensor | None, statistics: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the normalized x, plus its `other` gradient, of weight and bias."""
    from fullmatch.models.kernels import normalization_triton as kernels

    x, gradient = channels_last(x), channels_last(gradient)
    other = None if other is None else channels_last(other)
    return kernels.gradients(x, gradient, other, statistics, eps, slope)


def empty_images(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last)


def empty_table(x: Tensor, *rows: int) -> Tensor:
    return x.new_empty((*rows, x.shape[1]), dtype=torch.float32)


@normalize.register_fake
def _(x: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return empty_images(x), empty_table(x, len(STATISTICS))


@add_and_normalize.register_fake
def _(x: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_images(x), empty_images(x), empty_table(x, len(STATISTICS))


@convolve_and_normalize.register_fake
def _(x: Tensor, filters: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    count, _, height, width = x.shape
    total = x.new_empty((count, height, width, len(filters))).permute(0, 3, 1, 2)
    return total, empty_images(total), empty_table(total, len(STATISTICS))


@normalization_gradients.register_fake
def _(x: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_images(x), empty_table(x), empty_table(x)


def save_for_normalize(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])
    ctx.eps, ctx.slope = inputs[-2:]


def normalize_backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    x, statistics = ctx.saved_tensors
    # Here as well as in the operator: the compiler can then write it in this layout at once.
    gradient = channels_last(gradient)
    gradients = normalization_gradients(x, gradient, None, statistics, ctx.eps, ctx.slope)
    return *gradients, None, None


def save_for_add(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[0], output[2])
    ctx.set_materialize_grads(False)  # or zeros are read for a sum that nothing else uses
    ctx.eps, ctx.slope = inputs[-2:]


def add_backward(
    ctx: Any, other: Tensor | None, gradient: Tensor | None, _: None
) -> tuple[Tensor | None, ...]:
    total, statistics = ctx.saved_tensors
    if gradient is None:
        return other, other, None, None, None, None
    of_sum, of_weight, of_bias = normalization_gradients(
        total, channels_last(gradient), other, statistics, ctx.eps, ctx.slope
    )
    return of_sum, of_sum, of_weight, of_bias, None, None


def save_for_convolve(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output[0], output[2])
    ctx.set_materialize_grads(False)
    ctx.has_residual = inputs[2] is not None
    ctx.eps, ctx.slope = inputs[-2:]


def convolve_backward(
    ctx: Any, other: Tensor | None, gradient: Tensor | None, _: None
) -> tuple[Tensor | None, ...]:
    x, filters, total, statistics = ctx.saved_tensors
    of_weight: Tensor | None = None
    of_bias: Tensor | None = None
    if gradient is not None:
        of_sum, of_weight, of_bias = normalization_gradients(
            total, channels_last(gradient), other, statistics, ctx.eps, ctx.slope
        )
    elif other is not None:
        of_sum = other
    else:
        return (None,) * 7
    of_x = input_gradient(of_sum, filters) if ctx.needs_input_grad[0] else None
    of_residual = of_sum if ctx.has_residual else None
    return of_x, weight_gradient(x, of_sum), of_residual, of_weight, of_bias, None, None


normalize.register_autograd(normalize_backward, setup_context=save_for_normalize)
add_and_normalize.register_autograd(add_backward, setup_context=save_for_add)
convolve_and_normalize.register_autograd(convolve_backward, setup_context=save_for_convolve)
