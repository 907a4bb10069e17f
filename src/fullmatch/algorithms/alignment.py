"""Distribution alignment: rescale predictions so that their mean matches a target."""

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.core import Task

EPSILON = 1e-6  # added to both distributions, so that a class never predicted causes no 0 / 0


def align(probs: Tensor, current: Tensor, target: Tensor) -> Tensor:
    """Each row times target / current, renormalized; all three are probabilities."""
    scaled = probs * ((target + EPSILON) / (current + EPSILON))
    return scaled / scaled.sum(dim=1, keepdim=True)


def align_to_uniform(probs: Tensor, current: Tensor) -> Tensor:
    """Align to equal shares of all classes."""
    return align(probs, current, torch.full_like(current, 1 / len(current)))


def label_weights(task: Task) -> Tensor:  # (C,)
    """Weight of a labeled image by its class, so that images repeated in batches count once."""
    return torch.tensor(task.class_prior) / torch.tensor(task.batch_prior or task.class_prior)


class MovingMean(nn.Module):
    """Moving average of a batch's mean prediction.

    It starts at equal shares of all classes (`uniform`), or else at the mean of the first batch.
    """

    mean: Tensor  # (C,)
    started: Tensor  # () bool

    def __init__(self, num_classes: int, momentum: float = 0.999, *, uniform: bool = False) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.full((num_classes,), 1 / num_classes))
        self.register_buffer("started", torch.tensor(uniform))

    @torch.no_grad()
    def forward(self, probs: Tensor) -> Tensor:  # (B, C) -> (C,)
        """The average, including this batch."""
        batch = distributed.mean(probs.float().mean(dim=0))
        self.mean.lerp_(batch, torch.where(self.started, 1 - self.momentum, 1.0))
        self.started.fill_(True)
        return self.mean


class RecentMean(nn.Module):
    """Mean of the mean predictions of the last `length` batches."""

    means: Tensor  # (length, C)
    batches: Tensor  # () int64, number of batches so far

    def __init__(self, num_classes: int, length: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(length, num_classes))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, probs: Tensor) -> Tensor:  # (B, C) -> (C,)
        """The mean, including this batch."""
        length = len(self.means)
        place = (self.batches % length)[None]
        self.means[place] = distributed.mean(probs.float().mean(dim=0))[None]
        self.batches += 1
        return self.means.sum(dim=0) / self.batches.clamp(max=length)
