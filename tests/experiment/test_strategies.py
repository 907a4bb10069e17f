"""Which strategy is used, and why."""

from pathlib import Path
from typing import cast

import pytest

from fullmatch.experiment.inputs import RunInputs
from fullmatch.experiment.strategies import LABELS_ONLY, Comparison, explain_choice
from fullmatch.storage.result import Accuracy, StrategyResult


def result(name: str, accuracy: float) -> StrategyResult:
    return StrategyResult(name=name, accuracy=accuracy, interval=(0.0, 1.0), seconds=1.0)


def comparison(baseline: float, accuracies: tuple[float, ...], bonus: float) -> Comparison:
    """The last strategy is a network from scratch, which wins close calls."""
    compared = Comparison(cast("RunInputs", None), Path())
    compared.baseline = Accuracy(accuracy=baseline, interval=(0.0, 1.0))
    for number, accuracy in enumerate(accuracies):
        compared.results.append(result(f"strategy {number}", accuracy))
        compared.scores.append(accuracy + (bonus if number == len(accuracies) - 1 else 0))
    return compared


@pytest.mark.parametrize(
    ("baseline", "accuracies", "expected"),
    [
        (0.8, (0.7, 0.79), None),  # never worse than labels only, however much it would gain
        (0.8, (0.82, 0.79), 0),  # then the next best one is used, not labels only
        (0.8, (0.82, 0.81), 1),
        (0.8, (0.9, 0.81), 0),
    ],
)
def test_no_strategy_is_worse_than_labels_only(
    baseline: float, accuracies: tuple[float, ...], expected: int | None
) -> None:
    assert comparison(baseline, accuracies, 0.05).best == expected


def test_the_best_so_far_may_be_labels_only() -> None:
    assert comparison(0.8, (0.7,), 0.0).describe_best().startswith(f"{LABELS_ONLY}: 80.0 %")
    assert comparison(0.8, (0.85,), 0.0).describe_best().startswith("strategy 0: 85.0 %")


@pytest.mark.parametrize(
    ("accuracies", "chosen", "reason"),
    [
        ((0.9, 0.8, 0.8), 0, "the most accurate on held-out labels"),
        ((0.8, 0.8, 0.7), 1, "as accurate as labels only"),
        ((0.8, 0.8, 0.8), 1, "the simplest of the most accurate"),
        ((0.7, 0.8, 0.8), 1, "the simplest of the most accurate"),
        ((0.7, 0.8, 0.79), 2, "a close call"),
    ],
)
def test_why_a_strategy_is_used(accuracies: tuple[float, ...], chosen: int, reason: str) -> None:
    results = [result(f"strategy {number}", each) for number, each in enumerate(accuracies)]
    assert explain_choice(results, chosen).startswith(reason)
