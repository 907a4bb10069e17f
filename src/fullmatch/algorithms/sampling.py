"""Predictions sampled several times, their mean, and the selection of low-entropy images."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms.flexmatch import CurriculumThreshold
from fullmatch.core import Task
from fullmatch.losses import cross_entropy
from fullmatch.losses.precision import widen


def draw_uniform(
    shapes: Sequence[Sequence[int]], device: torch.device, *, rows: int = 0
) -> list[Tensor]:
    """Numbers in [0, 1) of these shapes, drawn in one call, for the rows of this process.

    Every process draws those of the whole batch, which do not depend on how it is shared. `rows`
    is the dimension that is shared.
    """
    processes = distributed.world_size()
    whole = [list(shape) for shape in shapes]
    for shape in whole:
        shape[rows] *= processes
    count = sum(map(math.prod, whole))
    drawn = torch.rand(count, dtype=torch.float32, device=device)
    parts = zip(torch.split(drawn, list(map(math.prod, whole))), whole, strict=True)
    draws = [part.view(shape) for part, shape in parts]
    if processes == 1:
        return draws
    own = torch.arange(distributed.rank(), max(s[rows] for s in whole), processes, device=device)
    pairs = zip(draws, shapes, strict=True)
    return [draw.index_select(rows, own[: shape[rows]]) for draw, shape in pairs]


def apply_dropout(rate: float, *features: Tensor) -> list[Tensor]:  # (..., F) each
    """Dropout with the same random numbers in eager and compiled code, unlike `nn.Dropout`.

    All random numbers of a step are drawn in one call, since compiled code does not preserve the
    order of several calls.
    """
    chances = draw_uniform([one.shape for one in features], features[0].device, rows=-2)
    pairs = zip(features, chances, strict=True)
    return [one * (chance >= rate) / (1 - rate) for one, chance in pairs]


def log_mean(samples: Tensor) -> Tensor:  # (S, B, C) logits -> (B, C)
    """Logarithm of the samples' mean probabilities, which can be used as logits."""
    return widen(samples).log_softmax(dim=2).logsumexp(dim=0) - math.log(len(samples))


def entropies(probs: Tensor) -> Tensor:  # (B, C) -> (B,)
    return -probs.xlogy(probs).sum(dim=1)


def sampled_cross_entropy(samples: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Cross-entropy averaged over samples and rows."""
    count = len(samples)
    weight = None if weight is None else weight.repeat(count)
    return cross_entropy(samples.flatten(0, 1), target.repeat(count), weight)


class LowEntropyCurriculum(CurriculumThreshold):
    """FlexMatch's thresholds, limited to images whose prediction has a low entropy."""

    def __init__(self, threshold: float, task: Task, *, warmup: bool, uncertainty: float) -> None:
        super().__init__(threshold, task, warmup=warmup)
        self.uncertainty = uncertainty

    def select(self, probs: Tensor, index: Tensor, entropy: Tensor) -> Tensor:
        """Like `forward`, but leaves out images of high entropy here and in the curriculum."""
        confidence, label = probs.max(dim=1)
        certain = entropy <= self.uncertainty
        weight = (confidence >= self.thresholds()[label]) & certain
        self.remember(index, label, (confidence >= self.threshold) & certain)
        return weight.float()
