"""What happens at which step."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The steps of a run, their learning rate, and when it logs, evaluates and saves."""

    steps: int
    rate: Callable[[int], float]  # learning rate of a step
    log_every: int
    evaluate_every: int
    checkpoint_every: int


def learning_rate(step: int, total: int, *, base: float, cosine: float) -> float:
    """Follows the first `cosine` of half a cosine wave: 7/16 ends at 0.195 of the base."""
    return base * max(0.0, math.cos(math.pi * cosine * step / total))
