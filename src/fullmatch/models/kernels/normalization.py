"""Batch norm; and all at once on a GPU: a convolution, an addition, batch norm and leaky ReLU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fullmatch.models.kernels.convolution import Conv3x3
from fullmatch.models.kernels.device import kernels_for
from fullmatch.models.kernels.normalization_operators import (
    add_and_normalize,
    convolve_and_normalize,
    fits,
    normalize,
)
from fullmatch.models.kernels.passes import Pass

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
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        with torch.no_grad():
            mean.lerp_(batch_mean, self.momentum)
            variance.lerp_(batch_variance * (n / max(n - 1, 1)), self.momentum)
        scale = self.weight * (batch_variance + self.eps).rsqrt()
        shift = self.bias - batch_mean * scale
        return (x.float() * scale[:, None, None] + shift[:, None, None]).to(x.dtype)

    def activated(self, x: Tensor, path: Tensor | None, batch: Pass) -> tuple[Tensor, Tensor]:
        """x + path, and the leaky ReLU of its normalisation.

        Where kernels compute it, the running statistics follow at the end of the pass.
        """
        if not (self.training and kernels_for(x) and fits(x.shape[1], x.numel())):
            total = x if path is None else x + path
            return total, F.leaky_relu(self(total), SLOPE)
        if path is None:
            total = x
            active, found = normalize(x, self.weight, self.bias, self.eps, SLOPE)
        else:
            total, active, found = add_and_normalize(
                x, path, self.weight, self.bias, self.eps, SLOPE
            )
        batch.found.append((self, found))
        return total, active

    def after(
        self, conv: Conv3x3, inner: Tensor, x: Tensor | None, batch: Pass
    ) -> tuple[Tensor, Tensor]:
        """`activated` of x and a convolution of inner, which are added first."""
        count, _, height, width = inner.shape
        able = fits(conv.out_channels, count * conv.out_channels * height * width)
        if not (self.training and conv.narrow and kernels_for(inner) and able):
            return self.activated(batch.convolved(conv, inner), x, batch)
        total, active, found = convolve_and_normalize(
            inner, conv.weight, x, self.weight, self.bias, self.eps, SLOPE
        )
        batch.found.append((self, found))
        return total, active
