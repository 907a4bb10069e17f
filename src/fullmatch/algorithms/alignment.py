"""Distribution alignment: predictions rescaled to meet a wanted one on average."""

import torch
from torch import Tensor, nn

from fullmatch import distributed

TINY = 1e-6  # added to both distributions, so that a class nobody predicts divides by something


def aligned(probs: Tensor, current: Tensor, wanted: Tensor) -> Tensor:
    """Each row times wanted / current, renormalised; all three are probabilities."""
    scaled = probs * ((wanted + TINY) / (current + TINY))
    return scaled / scaled.sum(dim=1, keepdim=True)


class MovingMean(nn.Module):
    """Moving average of the mean prediction of a batch; the first batch sets it."""

    mean: Tensor  # (C,)
    started: Tensor  # () bool

    def __init__(self, num_classes: int, momentum: float = 0.999) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.full((num_classes,), 1 / num_classes))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    @torch.no_grad()
    def forward(self, probs: Tensor) -> Tensor:  # (B, C) -> (C,)
        """The average with this batch already in it."""
        batch = distributed.mean(probs.float().mean(dim=0))
        self.mean.lerp_(batch, torch.where(self.started, 1 - self.momentum, 1.0))
        self.started.fill_(True)
        return self.mean


class RecentMean(nn.Module):
    """Mean of the mean predictions of the last batches, or of those there have been."""

    means: Tensor  # (length, C)
    batches: Tensor  # () int64, how many there have been

    def __init__(self, num_classes: int, length: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(length, num_classes))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, probs: Tensor) -> Tensor:  # (B, C) -> (C,)
        """The mean with this batch already in it."""
        length = len(self.means)
        place = (self.batches % length)[None]
        self.means[place] = distributed.mean(probs.float().mean(dim=0))[None]
        self.batches += 1
        return self.means.sum(dim=0) / self.batches.clamp(max=length)


def evened(probs: Tensor, current: Tensor) -> Tensor:
    """Aligned to equal shares of all classes."""
    return aligned(probs, current, torch.full_like(current, 1 / len(current)))
