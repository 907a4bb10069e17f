"""One forward pass in which neighboring layers are fused, where kernels for that exist."""

from collections.abc import Iterable

import torch.nn.functional as F
from torch import Tensor, nn

from fullmatch.models.kernels.convolution_operators import convolution, round_weights
from fullmatch.models.kernels.device import cast_like_autocast, use_kernels
from fullmatch.models.kernels.layout import can_normalize
from fullmatch.models.kernels.normalization_operators import (
    add_and_normalize,
    convolve_and_normalize,
    move_statistics,
    normalize,
)
from fullmatch.models.kernels.synchronized import SynchronizedBatchNorm
from fullmatch.models.wide_resnet import SLOPE

NARROW = {(32, 32), (32, 16)}  # (outputs, inputs) that cuDNN computes at half the speed
STEM = (16, 4)  # (outputs, inputs) of the kernel for a first convolution, padded to four channels


class FusedPass:
    """One forward pass; it holds what is done once for all layers instead of once per layer.

    Weights are rounded before the pass, and running statistics are updated by `finish`. Every
    method calls the plain layers where `use_kernels` is false.
    """

    def __init__(self, layers: Iterable[nn.Module], x: Tensor) -> None:
        self.statistics: list[tuple[nn.BatchNorm2d, Tensor]] = []
        self.rounded: dict[nn.Conv2d, Tensor] = {}
        if use_kernels(x):
            convs = [m for m in layers if isinstance(m, nn.Conv2d) and not is_narrow(m)]
            weights = round_weights([conv.weight for conv in convs]) if convs else []
            self.rounded = dict(zip(convs, weights, strict=True))

    def convolve(self, conv: nn.Conv2d, x: Tensor) -> Tensor:
        weight = self.rounded.get(conv)
        result: Tensor
        if weight is not None:
            result = conv._conv_forward(x, weight, conv.bias)
        elif is_narrow(conv) and use_kernels(x):
            result = convolution(x, conv.weight)
        else:
            result = conv(x)
        return result

    def normalize(
        self, norm: nn.BatchNorm2d, x: Tensor, residual: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return x + residual, and the leaky ReLU of its batch norm."""
        if not (fuses(norm, x) and can_normalize(x.shape[1], x.numel())):
            total = x if residual is None else x + residual
            return total, F.leaky_relu(norm(total), SLOPE)
        if residual is None:
            total = x
            active, statistics = normalize(x, norm.weight, norm.bias, norm.eps, SLOPE)
        else:
            total, active, statistics = add_and_normalize(
                x, residual, norm.weight, norm.bias, norm.eps, SLOPE
            )
        self.statistics.append((norm, statistics))
        return total, active

    def convolve_and_normalize(
        self, conv: nn.Conv2d, x: Tensor, residual: Tensor | None, norm: nn.BatchNorm2d
    ) -> tuple[Tensor, Tensor]:
        """Return conv(x) + residual, and the leaky ReLU of its batch norm."""
        count, _, height, width = x.shape
        fits = can_normalize(conv.out_channels, count * conv.out_channels * height * width)
        if not (fuses(norm, x) and is_narrow(conv) and fits):
            return self.normalize(norm, self.convolve(conv, x), residual)
        total, active, statistics = convolve_and_normalize(
            x, conv.weight, residual, norm.weight, norm.bias, norm.eps, SLOPE
        )
        self.statistics.append((norm, statistics))
        return total, active

    def finish(self) -> None:
        """Update the running statistics of all layers that kernels have normalized."""
        if self.statistics:
            norms, statistics = zip(*self.statistics, strict=True)
            means, variances = [n.running_mean for n in norms], [n.running_var for n in norms]
            momenta = [norm.momentum for norm in norms]
            move_statistics(means, variances, [table.detach() for table in statistics], momenta)


def convolve_stem(conv: nn.Conv2d, images: Tensor) -> Tensor:
    """Apply a first convolution, which has too few channels for cuDNN to be fast.

    The kernels read four channels, of which the last ones may be zero. They do not compute the
    gradient of the images.
    """
    x = cast_like_autocast(images)
    fits = conv.out_channels == STEM[0] and conv.in_channels <= STEM[1] and is_plain_3x3(conv)
    if not (fits and use_kernels(x)) or x.requires_grad:
        plain: Tensor = conv(x)
        return plain
    padding = (0, 0, 0, 0, 0, STEM[1] - conv.in_channels)
    result: Tensor = convolution(F.pad(x, padding), F.pad(conv.weight, padding))
    return result


def fuses(norm: nn.Module, x: Tensor) -> bool:
    """Whether our kernels compute this batch norm; they see the images of one process only."""
    synchronized = isinstance(norm, nn.SyncBatchNorm | SynchronizedBatchNorm)
    return norm.training and not synchronized and use_kernels(x)


def is_narrow(conv: nn.Conv2d) -> bool:
    """Whether our kernels compute this convolution."""
    return (conv.out_channels, conv.in_channels) in NARROW and is_plain_3x3(conv)


def is_plain_3x3(conv: nn.Conv2d) -> bool:
    return conv.kernel_size == (3, 3) and conv.stride == (1, 1) and conv.bias is None
