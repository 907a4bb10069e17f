"""A Wide ResNet whose layers run fused, and the switch from a plain one to it."""

from typing import cast

from torch import Tensor, nn

from fullmatch.core import Network
from fullmatch.models.kernels.batch_norm import OnePassBatchNorm
from fullmatch.models.kernels.fused_pass import FusedPass, convolve_stem
from fullmatch.models.wide_resnet import Block, WideResNet


class FusedWideResNet(WideResNet):
    """The same network; a convolution, the residual sum, and the norm after it are one step."""

    def feature_map(self, images: Tensor) -> Tensor:
        x = convolve_stem(self.stem, images)
        fused = FusedPass(self.blocks.modules(), x)
        blocks = cast(list[Block], list(self.blocks))
        next_norms = [*(block.norm1 for block in blocks[1:]), self.norm]
        x, active = fused.normalize(blocks[0].norm1, x)
        for block, next_norm in zip(blocks, next_norms, strict=True):
            first = x if block.raw_input else active
            _, inner = fused.convolve_and_normalize(block.conv1, first, None, block.norm2)
            if block.shortcut is not None:
                x = fused.convolve(block.shortcut, active if block.activate_shortcut else x)
            x, active = fused.convolve_and_normalize(block.conv2, inner, x, next_norm)
        fused.finish()
        return active


def accelerate(network: Network) -> Network:
    """Switch a plain Wide ResNet to fused layers, in place; return other networks unchanged.

    Only classes change: parameters, buffers, their names and their order stay the same.
    """
    if type(network) is WideResNet:
        network.__class__ = FusedWideResNet
        for module in network.modules():
            if type(module) is nn.BatchNorm2d:
                module.__class__ = OnePassBatchNorm
    return network
