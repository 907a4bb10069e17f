"""The learning rate of a step."""

import math


def learning_rate(step: int, total: int, *, base: float, cosine: float) -> float:
    """Falls along the first `cosine` of half a wave: 7/16 ends at 0.195 of the base."""
    return base * max(0.0, math.cos(math.pi * cosine * step / total))
