"""What happens at which step."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from fullmatch.config import OptimizerConfig, TrainingConfig

RISING_SHARE = 0.3  # of the steps of one cycle, without a given warm-up
FIRST_SHARE = 1 / 25  # of the learning rate that one cycle starts with


@dataclass(frozen=True)
class Schedule:
    """The steps of a run, their learning rate, and when it logs, evaluates and saves."""

    steps: int
    rate: Callable[[int], float]  # learning rate of a step
    log_every: int
    evaluate_every: int
    checkpoint_every: int
    ema: Callable[[int], float] | None = None  # decay of the averaged model, if it changes


def learning_rate(step: int, total: int, settings: OptimizerConfig) -> float:
    """The learning rate of a step: what a schedule leaves of the base, after a warm-up."""
    if settings.schedule == "one_cycle":
        return settings.rate * one_cycle(step, total, settings.warmup)
    rising = min(1.0, (step + 1) / (settings.warmup + 1))
    return settings.rate * rising * remaining_share(step, total, settings)


def remaining_share(step: int, total: int, settings: OptimizerConfig) -> float:
    """The share of the learning rate that a schedule leaves at a step."""
    if settings.schedule == "cosine":
        return max(0.0, math.cos(math.pi * settings.cosine * step / total))
    if settings.schedule == "linear":
        return max(0.0, 1 - step / total)
    if settings.schedule == "step":
        passed = sum(step >= share * total for share in settings.milestones)
        return float(settings.gamma**passed)
    return 1.0


def one_cycle(step: int, total: int, warmup: int) -> float:
    """Up from `FIRST_SHARE` to 1 and down to 0, both along half a cosine wave."""
    peak = warmup or round(RISING_SHARE * total)
    if step < peak:
        return FIRST_SHARE + (1 - FIRST_SHARE) * (1 - math.cos(math.pi * step / peak)) / 2
    progress = min(1.0, (step - peak) / max(1, total - peak))
    return (1 + math.cos(math.pi * progress)) / 2


def evaluation_interval(settings: TrainingConfig, step_images: int, test_images: int) -> int:
    """Steps between evaluations: `evaluate_every`, doubled until they are cheap enough.

    The work is counted in images that a network sees, not in seconds, so that the same settings
    always evaluate at the same steps.
    """
    share, interval = settings.evaluate_share, settings.evaluate_every
    if share is None:
        return interval
    step = 3 * step_images  # forward and backward
    evaluation = 2 * test_images  # by student and teacher
    while evaluation > share * step * interval and interval < settings.steps:
        interval *= 2
    return interval


def ema_decay(step: int, total: int, settings: TrainingConfig) -> float:
    """How much of the averaged model stays at a step."""
    if settings.ema_schedule == "warmup":
        return min(settings.ema, (1 + step) / (10 + step))
    if settings.ema_schedule == "cosine":
        return 1 - (1 - settings.ema) * (1 + math.cos(math.pi * step / total)) / 2
    return settings.ema
