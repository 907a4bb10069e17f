"""Batch norm, alone or between an addition and a leaky ReLU, where a GPU does all three at once."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fullmatch.models.gpu import channels_last, kernels_for

SLOPE = 0.1  # of every leaky ReLU


class Norm(nn.BatchNorm2d):
    """Batch norm; a compiled one takes mean and variance in a single look at its input.

    It does not count batches, which a fixed momentum has no use for.
    """

    def forward(self, x: Tensor) -> Tensor:
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        if not (self.training and torch.compiler.is_compiling()):
            return F.batch_norm(
                x, mean, variance, self.weight, self.bias, self.training, self.momentum, self.eps
            )
        wide = x.float()
        batch_mean = wide.mean(dim=(0, 2, 3))
        batch_variance = (wide.square().mean(dim=(0, 2, 3)) - batch_mean.square()).clamp(min=0)
        return self.normalized(x, batch_mean, batch_variance, x.numel() // x.shape[1])

    def normalized(self, x: Tensor, batch_mean: Tensor, batch_variance: Tensor, n: int) -> Tensor:
        """With statistics of n numbers a channel, which also move the running ones."""
        self.follow(batch_mean, batch_variance, n)
        scale = self.weight * (batch_variance + self.eps).rsqrt()
        shift = self.bias - batch_mean * scale
        return (x.float() * scale[:, None, None] + shift[:, None, None]).to(x.dtype)

    @torch.no_grad()
    def follow(self, batch_mean: Tensor, batch_variance: Tensor, n: int) -> None:
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        mean.lerp_(batch_mean, self.momentum)
        variance.lerp_(batch_variance * (n / max(n - 1, 1)), self.momentum)

    def activated(self, x: Tensor, path: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x + path, and the leaky ReLU of its normalisation."""
        if not (self.training and kernels_for(x) and fits(x)):
            total = x if path is None else x + path
            return total, F.leaky_relu(self(total), SLOPE)
        if path is None:
            total = x
            active, found = normalize(x, self.weight, self.bias, self.eps, SLOPE)
        else:
            total, active, found = add_and_normalize(
                x, path, self.weight, self.bias, self.eps, SLOPE
            )
        self.follow(found[0], found[1], x.numel() // x.shape[1])
        return total, active


def fits(x: Tensor) -> bool:
    """Whether the kernels know such a shape: channels a power of two, and numbers of 32 bits."""
    channels = x.shape[1]
    # At least those that one program finishes together; of more than 1024 nothing was tried.
    return 8 <= channels <= 1024 and channels & (channels - 1) == 0 and x.numel() < 2**31


# The kernels need Triton, which not every machine has, so each operator imports them when it runs.


@torch.library.custom_op("fullmatch::normalize", mutates_args=())
def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """Activated, and what `gradients` needs: mean, variance, scale and shift of every channel."""
    from fullmatch.models import normalization_kernels as kernels

    return kernels.normalize(channels_last(x), None, weight, bias, eps, slope)[1:]


@torch.library.custom_op("fullmatch::add_and_normalize", mutates_args=())
def add_and_normalize(
    x: Tensor, path: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum first, then what `normalize` gives of it."""
    from fullmatch.models import normalization_kernels as kernels

    return kernels.normalize(channels_last(x), channels_last(path), weight, bias, eps, slope)


@torch.library.custom_op("fullmatch::normalization_gradients", mutates_args=())
def gradients(
    x: Tensor, gradient: Tensor, other: Tensor | None, found: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of what was normalised, which may have a gradient of its own as well; of weight and bias."""
    from fullmatch.models import normalization_kernels as kernels

    beside = None if other is None else channels_last(other)
    return kernels.gradients(channels_last(x), channels_last(gradient), beside, found, eps, slope)


def like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last)


def statistics(x: Tensor) -> Tensor:
    return x.new_empty((4, x.shape[1]), dtype=torch.float32)


@normalize.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float) -> tuple[Tensor, Tensor]:
    return like(x), statistics(x)


@add_and_normalize.register_fake
def _(
    x: Tensor, path: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    return like(x), like(x), statistics(x)


@gradients.register_fake
def _(
    x: Tensor, gradient: Tensor, other: Tensor | None, found: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    return like(x), found.new_empty(x.shape[1]), found.new_empty(x.shape[1])


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


normalize.register_autograd(backward, setup_context=keep)
add_and_normalize.register_autograd(backward_of_sum, setup_context=keep_sum)
