"""The kernels that normalise as operators: their shapes for a compiler, and their gradients."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fullmatch.models.kernels.convolution import input_gradient, weight_gradient
from fullmatch.models.kernels.device import channels_last, operator

# What the kernels find out about each channel, line by line.
FOUND = ("mean", "variance", "scale", "shift", "unbiased")


def fits(channels: int, numbers: int) -> bool:
    """Whether the kernels know such images: channels a power of two, and places of 32 bits."""
    # At least those that one program finishes together; of more than 1024 nothing was tried.
    return 8 <= channels <= 1024 and channels & (channels - 1) == 0 and numbers < 2**31


# The kernels need Triton, which not every machine has, so each operator imports them when it runs.


@operator("normalize")
def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """The activation, and the lines of `FOUND` for every channel."""
    from fullmatch.models.kernels import normalization_triton as kernels

    return kernels.normalize(channels_last(x), None, weight, bias, eps, slope)[1:]


@operator("add_and_normalize")
def add_and_normalize(
    x: Tensor, path: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum first, then what `normalize` gives of it."""
    from fullmatch.models.kernels import normalization_triton as kernels

    return kernels.normalize(channels_last(x), channels_last(path), weight, bias, eps, slope)


@operator("convolve_and_normalize")
def convolve_and_normalize(
    inner: Tensor,
    filters: Tensor,
    x: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The convolution of inner, plus x, first; then what `normalize` gives of it."""
    from fullmatch.models.kernels import convolution_triton as convolution_kernels
    from fullmatch.models.kernels import normalization_triton as kernels

    other = None if x is None else channels_last(x)
    total, sums = convolution_kernels.summed_convolution(channels_last(inner), filters, other)
    return total, *kernels.normalize_summed(total, sums, weight, bias, eps, slope)


@operator("move_statistics", mutates_args=("means", "variances"))
def move_statistics(
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    found: Sequence[Tensor],
    momenta: Sequence[float],
) -> None:
    """Towards means and unbiased variances that `normalize` found."""
    batch = [one[FOUND.index(what)] for what in ("mean", "unbiased") for one in found]
    torch._foreach_lerp_([*means, *variances], batch, [*momenta, *momenta])


@operator("normalization_gradients")
def gradients(
    x: Tensor, gradient: Tensor, other: Tensor | None, found: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of what was normalised, which may have a gradient of its own as well; of weight and bias."""
    from fullmatch.models.kernels import normalization_triton as kernels

    beside = None if other is None else channels_last(other)
    return kernels.gradients(channels_last(x), channels_last(gradient), beside, found, eps, slope)


def like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last)


def by_channel(x: Tensor, *lines: int) -> Tensor:
    return x.new_empty((*lines, x.shape[1]), dtype=torch.float32)


@normalize.register_fake
def _(x: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return like(x), by_channel(x, len(FOUND))


@add_and_normalize.register_fake
def _(x: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    return like(x), like(x), by_channel(x, len(FOUND))


@convolve_and_normalize.register_fake
def _(inner: Tensor, filters: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    count, _, height, width = inner.shape
    total = inner.new_empty((count, height, width, len(filters))).permute(0, 3, 1, 2)
    return total, like(total), by_channel(total, len(FOUND))


@gradients.register_fake
def _(x: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    return like(x), by_channel(x), by_channel(x)


def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])
    ctx.eps, ctx.slope = inputs[-2:]


def keep_sum(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[0], output[2])
    ctx.set_materialize_grads(False)  # zeros for a sum that nobody else reads would be read, too
    ctx.eps, ctx.slope = inputs[-2:]


def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    x, found = ctx.saved_tensors
    # Here as well as in the operator: a compiler can write its result in this order at once.
    gradient = channels_last(gradient)
    return *gradients(x, gradient, None, found, ctx.eps, ctx.slope), None, None


def backward_of_sum(
    ctx: Any, other: Tensor | None, gradient: Tensor | None, _: None
) -> tuple[Tensor | None, ...]:
    total, found = ctx.saved_tensors
    if gradient is None:
        return other, other, None, None, None, None
    of_sum, *rest = gradients(total, channels_last(gradient), other, found, ctx.eps, ctx.slope)
    return of_sum, of_sum, *rest, None, None


def keep_convolved(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output[0], output[2])
    ctx.set_materialize_grads(False)
    ctx.adds = inputs[2] is not None
    ctx.eps, ctx.slope = inputs[-2:]


def backward_of_convolved(
    ctx: Any, other: Tensor | None, gradient: Tensor | None, _: None
) -> tuple[Tensor | None, ...]:
    inner, filters, total, found = ctx.saved_tensors
    rest: list[Tensor | None]
    if gradient is not None:
        of_sum, *rest = gradients(total, channels_last(gradient), other, found, ctx.eps, ctx.slope)
    elif other is not None:
        of_sum, rest = other, [None, None]
    else:
        return (None,) * 7
    of_inner = input_gradient(of_sum, filters) if ctx.needs_input_grad[0] else None
    of_x = of_sum if ctx.adds else None
    return of_inner, weight_gradient(inner, of_sum), of_x, *rest, None, None


normalize.register_autograd(backward, setup_context=keep)
add_and_normalize.register_autograd(backward_of_sum, setup_context=keep_sum)
convolve_and_normalize.register_autograd(backward_of_convolved, setup_context=keep_convolved)
