"""Batch norm that reads its input once when compiled."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class OnePassBatchNorm(nn.BatchNorm2d):
    """Batch norm; compiled, it computes mean and variance in one pass over its input.

    It does not count batches, because a fixed momentum does not need their number.
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
        return self.normalize(x, batch_mean, batch_variance, x.numel() // x.shape[1])

    def normalize(
        self, x: Tensor, batch_mean: Tensor, batch_variance: Tensor, count: int
    ) -> Tensor:
        """Apply statistics of `count` values per channel, and update the running ones."""
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        with torch.no_grad():
            mean.lerp_(batch_mean, self.momentum)
            variance.lerp_(batch_variance * (count / max(count - 1, 1)), self.momentum)
        scale = self.weight * (batch_variance + self.eps).rsqrt()
        shift = self.bias - batch_mean * scale
        wide = x if x.dtype == torch.float64 else x.float()
        return (wide * scale[:, None, None] + shift[:, None, None]).to(x.dtype)
