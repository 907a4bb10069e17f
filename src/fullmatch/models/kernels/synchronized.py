"""Synchronized batch norm: several processes train as one would with all of their images.

In eager steps on GPUs it is torch's own. That one does not run on a CPU, and the compiler cannot
trace it as part of one graph: in both cases it is ours.
"""

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.models.kernels.batch_norm import OnePassBatchNorm


class SynchronizedBatchNorm(OnePassBatchNorm):
    """Computes mean and variance over the images of all processes while they train together."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or distributed.world_size() == 1:
            return super().forward(x)
        wide = x if x.dtype == torch.float64 else x.float()
        sums = torch.stack([wide.sum(dim=(0, 2, 3)), wide.square().sum(dim=(0, 2, 3))])
        sums = distributed.total(sums)
        count = distributed.world_size() * x.numel() // x.shape[1]
        batch_mean, mean_square = (sums / count).unbind()
        batch_variance = (mean_square - batch_mean.square()).clamp(min=0)
        return self.normalize(x, batch_mean, batch_variance, count)


def synchronize_batch_norms(network: nn.Module, *, by_torch: bool = False) -> int:
    """Synchronize the 2-d batch norms of a network in place; return how many others it has.

    `by_torch`: by torch's own class. Only classes change: parameters and names stay the same.
    """
    unsynchronized = 0
    for module in network.modules():
        if type(module) in (nn.BatchNorm2d, OnePassBatchNorm) and module.track_running_stats:
            module.__class__ = nn.SyncBatchNorm if by_torch else SynchronizedBatchNorm
            module.__dict__["process_group"] = None  # all processes
        elif isinstance(module, nn.modules.batchnorm._BatchNorm):
            unsynchronized += 1
    return unsynchronized
