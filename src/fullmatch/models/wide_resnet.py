"""Wide ResNet with pre-activation (Zagoruyko and Komodakis, 2016), as the field uses it.

TorchSSL gives its convolutions biases. Every path from one leads through a batch norm, which takes
any constant out again, so a bias changes neither outputs nor training; here it is off, which saves
a twentieth of a step on a GPU. `conv_bias=True` gives the published parameter counts.
"""

from typing import NamedTuple

from torch import Tensor, nn

from fullmatch.core import Network
from fullmatch.models.kernels.convolution import Conv3x3, Stem
from fullmatch.models.kernels.normalization import Norm
from fullmatch.models.kernels.passes import Pass


class Left(NamedTuple):
    """What a block leaves to the normalisation after it: a convolution, to be added to x."""

    conv: Conv3x3
    inner: Tensor


class Block(nn.Module):
    """Two 3x3 convolutions, each after normalisation and activation."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, bias: bool, activate_shortcut: bool
    ) -> None:
        super().__init__()
        self.activate_shortcut = activate_shortcut
        self.norm1 = norm(inputs)
        self.conv1 = Conv3x3(inputs, outputs, stride=stride, bias=bias)
        self.norm2 = norm(outputs)
        self.conv2 = Conv3x3(outputs, outputs, bias=bias)
        changes = stride != 1 or inputs != outputs
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=bias) if changes else None

    def forward(self, x: Tensor, left: Left | None, batch: Pass) -> tuple[Tensor, Left]:
        x, active = summed(self.norm1, x, left, batch)
        _, inner = self.norm2.after(self.conv1, active, None, batch)
        if self.shortcut is not None:
            x = batch.convolved(self.shortcut, active if self.activate_shortcut else x)
        return x, Left(self.conv2, inner)


def summed(norm: Norm, x: Tensor, left: Left | None, batch: Pass) -> tuple[Tensor, Tensor]:
    if left is None:
        return norm.activated(x, None, batch)
    return norm.after(left.conv, left.inner, x, batch)


class WideResNet(Network):
    """Depth 6n + 4 and a width factor; a list of groups makes the four-group form for 96x96."""

    def __init__(
        self,
        num_classes: int,
        *,
        depth: int = 28,
        width: int = 2,
        channels: int = 3,
        groups: int = 3,
        first_stride: int = 1,
        norm_momentum: float = 0.001,
        conv_bias: bool = False,
    ) -> None:
        super().__init__()
        if depth % 6 != 4:
            raise ValueError(f"depth is {depth}, expected 6n + 4, such as 10, 16, 22 or 28")
        blocks = (depth - 4) // 6
        self.stem = Stem(channels, 16, bias=conv_bias)
        layers: list[nn.Module] = []
        inputs = 16
        for group in range(groups):
            outputs = 16 * 2**group * width
            for block in range(blocks):
                stride = 1 if block else (first_stride if group == 0 else 2)
                # Only the very first shortcut reads the activated tensor; later ones read the sum.
                first = group == 0 and block == 0
                layers.append(
                    Block(inputs, outputs, stride, bias=conv_bias, activate_shortcut=first)
                )
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.norm = norm(inputs)
        self.head = nn.Linear(inputs, num_classes)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = norm_momentum
            elif isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")
        nn.init.xavier_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        x, left = self.stem(images), None
        batch = Pass(self.blocks.modules(), x)
        for block in self.blocks:
            x, left = block(x, left, batch)
        _, active = summed(self.norm, x, left, batch)
        batch.end()
        return active

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits


def norm(channels: int) -> Norm:
    return Norm(channels, eps=1e-3)
