"""Wide ResNet with pre-activation (Zagoruyko and Komodakis, 2016), as FixMatch and others use it.

TorchSSL gives its convolutions biases. Every one of them is followed by a batch norm, which removes
any constant, so a bias changes neither outputs nor training. It is off here, which saves 5 % of a
step on a GPU; `conv_bias=True` gives the published parameter counts.

In TorchSSL, and in USB and FullMatch's released code, the first block of every group but the first
computes its first batch norm and then reads the raw sum instead. `torchssl_blocks=True` does the
same; the default is the form of the network's paper, which FixMatch's authors use.
"""

import re

import torch.nn.functional as F
from torch import Tensor, nn

from fullmatch.core import Network

WIDE_RESNET = re.compile(r"wrn-(?P<depth>\d{1,9})-(?P<width>\d{1,9})")  # the name of one
SLOPE = 0.1  # of every leaky ReLU
EPS = 1e-3  # of every batch norm


def least_weights(depth: int, width: int) -> int:
    """A bound below the number of weights: those of 3x3 convolutions of the third group."""
    return (2 * (depth // 6) - 1) * 9 * (64 * width) ** 2


class Block(nn.Module):
    """Two 3x3 convolutions, each after batch norm and leaky ReLU, and a shortcut around them.

    With `raw_input` the first convolution reads what the first batch norm reads, as in TorchSSL;
    that norm keeps its running statistics, but learns nothing.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        *,
        bias: bool,
        activate_shortcut: bool,
        raw_input: bool = False,
    ) -> None:
        super().__init__()
        self.activate_shortcut, self.raw_input = activate_shortcut, raw_input
        self.norm1 = nn.BatchNorm2d(inputs, eps=EPS)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=bias)
        self.norm2 = nn.BatchNorm2d(outputs, eps=EPS)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=bias)
        changes_shape = stride != 1 or inputs != outputs
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=bias) if changes_shape else None

    def forward(self, x: Tensor) -> Tensor:
        active = F.leaky_relu(self.norm1(x), SLOPE)
        first = self.conv1(x if self.raw_input else active)
        inner = F.leaky_relu(self.norm2(first), SLOPE)
        if self.shortcut is not None:
            x = self.shortcut(active if self.activate_shortcut else x)
        path: Tensor = self.conv2(inner)
        return x + path


class WideResNet(Network):
    """Depth 6n + 4 and a width factor; four groups make the form for 96x96 images."""

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
        torchssl_blocks: bool = False,
    ) -> None:
        super().__init__()
        self.torchssl_blocks = torchssl_blocks
        if depth % 6 != 4:
            raise ValueError(f"depth is {depth}, expected 6n + 4, such as 10, 16, 22 or 28")
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=conv_bias)
        self.blocks = nn.ModuleList()
        inputs = 16
        for group in range(groups):
            outputs = 16 * 2**group * width
            for place in range((depth - 4) // 6):
                stride = 1 if place else (first_stride if group == 0 else 2)
                # Only the very first shortcut reads the activated tensor; later ones read the sum.
                first = group == 0 and place == 0
                block = Block(
                    inputs,
                    outputs,
                    stride,
                    bias=conv_bias,
                    activate_shortcut=first,
                    raw_input=torchssl_blocks and group > 0 and place == 0,
                )
                self.blocks.append(block)
                inputs = outputs
        self.norm = nn.BatchNorm2d(inputs, eps=EPS)
        self.head = nn.Linear(inputs, num_classes)
        self.initialize(norm_momentum)

    def initialize(self, norm_momentum: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = norm_momentum
            elif isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")
        nn.init.xavier_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        x: Tensor = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return F.leaky_relu(self.norm(x), SLOPE)

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits
