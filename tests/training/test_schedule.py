"""The learning rate at published points."""

from typing import Any, get_args

import pytest

from fullmatch.config import OptimizerConfig, TrainingConfig
from fullmatch.config.schema import EMA_SCHEDULES, SCHEDULES, EmaScheduleName, ScheduleName
from fullmatch.training.schedule import ema_decay, evaluation_interval, learning_rate


def rates(total: int = 100, **settings: Any) -> list[float]:
    """The learning rate of every step, with a base of 1."""
    config = OptimizerConfig(rate=1.0, **settings)
    return [learning_rate(step, total, config) for step in range(total + 1)]


@pytest.mark.parametrize(
    ("share", "factor"),
    [(0, 1), (0.25, 0.9415440652), (0.5, 0.7730104534), (0.75, 0.5141027442), (1, 0.1950903220)],
)
def test_published_values(share: float, factor: float) -> None:
    total = 2**20
    rate = learning_rate(int(share * total), total, OptimizerConfig())
    assert rate == pytest.approx(0.03 * factor, abs=1e-11)


@pytest.mark.parametrize(("cosine", "last"), [(63 / 128, 0.0245412285), (5 / 16, 0.5555702330)])
def test_variants(cosine: float, last: float) -> None:
    assert rates(cosine=cosine)[-1] == pytest.approx(last, abs=1e-10)


def test_falls_and_is_never_negative() -> None:
    falling = rates(cosine=0.7)
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 0.0


def test_warm_up_rises_to_the_usual_rate() -> None:
    plain, warm = rates(cosine=0.5), rates(cosine=0.5, warmup=9)
    assert warm[0] == pytest.approx(0.1)
    assert warm[:10] == sorted(warm[:10])
    assert warm[9:] == plain[9:]


def test_linear_and_constant() -> None:
    assert rates(4, schedule="linear") == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0])
    assert rates(4, schedule="constant", warmup=1) == [0.5, 1.0, 1.0, 1.0, 1.0]


def test_drops_at_milestones() -> None:
    assert rates(4, schedule="step") == pytest.approx([1.0, 1.0, 0.1, 0.01, 0.01])
    dropped = rates(4, schedule="step", milestones=(0.25,), gamma=0.5)
    assert dropped == pytest.approx([1.0, 0.5, 0.5, 0.5, 0.5])


def test_one_cycle_rises_and_falls() -> None:
    cycle = rates(schedule="one_cycle")
    assert cycle[0] == pytest.approx(1 / 25)
    assert cycle[30] == 1.0
    assert cycle[:31] == sorted(cycle[:31])
    assert cycle[30:] == sorted(cycle[30:], reverse=True)
    assert cycle[-1] == pytest.approx(0.0, abs=1e-12)
    assert rates(schedule="one_cycle", warmup=10)[10] == 1.0


def test_the_average_may_forget_faster_at_the_start() -> None:
    def decays(total: int, **settings: Any) -> list[float]:
        training = TrainingConfig(ema=0.9, **settings)
        return [ema_decay(step, total, training) for step in range(total + 1)]

    assert decays(3) == [0.9] * 4
    warm = decays(200, ema_schedule="warmup")
    assert warm[:2] == [1 / 10, 2 / 11]
    assert warm[-1] == 0.9
    assert decays(2, ema_schedule="cosine") == pytest.approx([0.9, 0.95, 1.0])


def test_evaluations_are_rarer_where_they_cost_too_much() -> None:
    """A step of 24 images, with its backward pass, is 72; an evaluation is two passes."""

    def interval(test_images: int, share: float | None, steps: int = 10_000) -> int:
        settings = TrainingConfig(steps=steps, evaluate_every=100, evaluate_share=share)
        return evaluation_interval(settings, 24, test_images)

    assert interval(10**9, None) == 100
    assert interval(720, 0.2) == 100  # 1,440 of 7,200
    assert interval(721, 0.2) == 200
    assert interval(7200, 0.2) == 1600
    assert interval(10**9, 0.2, steps=500) == 800  # only after the last step


def test_every_schedule_is_described() -> None:
    assert tuple(SCHEDULES) == get_args(ScheduleName)
    assert tuple(EMA_SCHEDULES) == get_args(EmaScheduleName)
