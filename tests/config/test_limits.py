"""Every numeric setting has limits; errors say what was expected."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

import pytest

from fullmatch.algorithms import ALGORITHMS, FixMatch, FreeMatch, Full, full
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
)
from fullmatch.config.limits import (
    Amount,
    Cosine,
    Count,
    Number,
    Positive,
    Seed,
    Share,
    ShareBelowOne,
    check_limits,
    limits_of,
)
from fullmatch.errors import UserError

CONFIGS = (DataConfig, ModelConfig, OptimizerConfig, TrainingConfig, ExperimentConfig)
# The valid number of labels depends on the data and is checked there.
ELSEWHERE = {"labels"}


def numbers(cls: type[Any]) -> set[str]:
    """Fields that are numbers, or optional numbers."""
    hints = get_type_hints(cls)
    names = {field.name for field in dataclasses.fields(cls)}
    return {name for name in names if {int, float} & {hints[name], *get_args(hints[name])}}


@pytest.mark.parametrize("cls", [*ALGORITHMS.values(), Full, *CONFIGS])
def test_every_number_has_limits(cls: type) -> None:
    assert numbers(cls) - ELSEWHERE <= set(limits_of(cls))


@pytest.mark.parametrize("spec", ALGORITHMS.values())
def test_defaults_are_within_limits(spec: type[Any]) -> None:
    check_limits(spec())


@dataclass(frozen=True)
class Inner:
    part: ShareBelowOne = 0.0


@dataclass(frozen=True)
class Settings:
    share: Share = 0.5
    positive: Positive = 1.0
    amount: Amount = 0.0
    cosine: Cosine = 0.0
    number: Number = 0.0
    count: Count | None = None
    seed: Seed = 0
    free: int = 0
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Settings(share=95.0), "share is 95.0, expected 0 to 1"),
        (Settings(share=-0.1), "share is -0.1, expected 0 to 1"),
        (Settings(share=math.nan), "share is nan, expected a finite number"),
        (Settings(positive=0.0), "positive is 0.0, expected more than 0"),
        (Settings(positive=math.inf), "positive is inf, expected a finite number"),
        (Settings(amount=-1.0), "amount is -1.0, expected 0 or more"),
        (Settings(cosine=-2.0), "cosine is -2.0, expected -1 to 1"),
        (Settings(number=-math.inf), "number is -inf, expected a finite number"),
        (Settings(count=0), "count is 0, expected 1 or more"),
        (Settings(seed=2**63), f"seed is {2**63}, expected 0 to {2**63 - 1}"),
        (Settings(inner=Inner(1.0)), "inner.part is 1.0, expected 0 to less than 1"),
    ],
)
def test_errors_name_the_setting_outside_its_limits(value: Settings, words: str) -> None:
    with pytest.raises(UserError) as error:
        check_limits(value)
    assert str(error.value) == words


def test_values_within_limits_pass() -> None:
    edges = Settings(share=1.0, cosine=-1.0, number=-1e300, count=10**400, free=-1, inner=Inner())
    for value in (Settings(), edges, Settings(share=0.0, positive=1e-300), Settings, None, 3):
        check_limits(value)


def test_unresolvable_annotations_are_ignored() -> None:
    @dataclass
    class Foreign:
        share: "Annotated[float, Nowhere]" = 2.0  # noqa: F821

    check_limits(Foreign())


def test_a_config_checks_its_algorithm() -> None:
    class NoDataclass:
        threshold = 95.0

    ExperimentConfig(algorithm=NoDataclass())
    ExperimentConfig(algorithm=FixMatch(threshold=1.0))
    with pytest.raises(UserError, match=r"^algorithm\.threshold is 95\.0, expected 0 to 1$"):
        ExperimentConfig(algorithm=full(FixMatch(threshold=95.0)))
    with pytest.raises(UserError, match=r"^optimizer\.cosine is 0\.6, expected 0 to 0\.5$"):
        ExperimentConfig(algorithm=FixMatch(), optimizer=OptimizerConfig(cosine=0.6))


def test_limits_of_two_fields_together() -> None:
    FreeMatch(floor=0.9, threshold=0.9)
    with pytest.raises(UserError, match=r"algorithm\.floor is 0\.9, expected 0\.5 or less"):
        FreeMatch(floor=0.9, threshold=0.5)
