"""Batch norm over the images of all processes, so that several GPUs train as one would."""

from typing import cast

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.models.kernels.normalization import Norm


class SharedNorm(Norm):
    """Takes mean and variance over all processes while they train together."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or distributed.world_size() == 1:
            return super().forward(x)
        wide = x.float()
        sums = torch.stack([wide.sum(dim=(0, 2, 3)), wide.square().sum(dim=(0, 2, 3))])
        sums = cast(Tensor, distributed.Sum.apply(sums))
        count = distributed.world_size() * x.numel() // x.shape[1]
        batch_mean, square = (sums / count).unbind()
        batch_variance = (square - batch_mean.square()).clamp(min=0)
        return self.normalized(x, batch_mean, batch_variance, count)


def share_statistics(network: nn.Module) -> int:
    """Makes batch norms take everybody's images; the number of those of other kinds, which do not.

    They keep their place, parameters and names: only how they compute changes.
    """
    other = 0
    for module in network.modules():
        if type(module) in (nn.BatchNorm2d, Norm) and module.track_running_stats:
            module.__class__ = SharedNorm
        elif isinstance(module, nn.modules.batchnorm._BatchNorm):
            other += 1
    return other
