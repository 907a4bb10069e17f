"""A plan uses the rate of its own case, or of the nearest one, and says so."""

import json
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.reproduce.grid import TableCell, config_for
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.rates import (
    MeasuredRate,
    PlannedCase,
    StepCost,
    benchmark_rates,
    measured_rates,
    nearest_rate,
    run_rates,
)
from tests.reproduce.conftest import row_named
from tests.reproduce.test_lines import CIFAR, make_entry, with_setting

GPU = "a GPU"
CASE = PlannedCase.of(config_for(row_named("FixMatch"), CIFAR, 0), GPU)
DOCS = Path(__file__).parents[2] / "docs"


def rate(speed: float, **changes: object) -> MeasuredRate:
    same = {"device": GPU, "model": CASE.model, "data": CASE.data, "method": CASE.method}
    fields = {"steps_per_second": speed, **same, "step": CASE.step, "date": "2026-01-01"}
    return MeasuredRate(**fields | changes)  # type: ignore[arg-type]


def test_same_case_comes_first() -> None:
    others = [
        rate(900.0, device="another GPU", date="2026-02-02"),
        rate(800.0, step=CASE.step._replace(unlabeled=1)),
        rate(700.0, data="svhn"),
        rate(600.0, method="FullMatch"),
    ]
    for count in range(len(others), 0, -1):  # the nearest of those that are left
        nearest = nearest_rate(CASE, others[:count])
        assert nearest is others[count - 1]
    exact = nearest_rate(CASE, [*others, rate(1.0)])
    assert exact == rate(1.0)
    assert exact is not None
    assert exact.describe(CASE) == "measured on a GPU"
    assert others[3].describe(CASE) == "measured on a GPU (the nearest: FullMatch)"
    assert others[0].describe(CASE) == "measured on another GPU (the nearest: another device)"


def test_speed_of_another_network_does_not_count() -> None:
    assert nearest_rate(CASE, [rate(9.0, model="wrn-28-8")]) is None


def test_fastest_of_the_newest_day_counts() -> None:
    older = rate(300.0, date="2025-01-01")
    assert nearest_rate(CASE, [older, rate(50.0), rate(100.0)]) == rate(100.0)


def test_any_cpu_is_a_cpu() -> None:
    case = CASE._replace(device="CPU (2 threads)")
    assert all(rate(9.0, device="CPU (1 threads)").matches(case))


def test_rates_of_runs() -> None:
    row = row_named("FullMatch")
    usual = make_entry(row, 0, 0.8, steps_per_second=10.0, cell=TableCell("cifar10", 40))
    shrunk = with_setting(usual, "training", "repeat_labels", False)
    unknown = with_setting(usual, "training", "gone", 1)
    without = make_entry(row, 0, 0.8)
    first, second = run_rates([usual, shrunk, unknown, without])
    assert first.method == "FullMatch"
    assert first.step == StepCost(64, 448)
    assert second.step == StepCost(40, 448)


def test_rates_of_benchmarks(tmp_path: Path) -> None:
    rates = measured_rates(Ledger(DOCS / "results" / "runs"))
    full = PlannedCase.of(config_for(row_named("FullFlex"), CIFAR, 0), "NVIDIA H200")
    nearest = nearest_rate(full, rates)
    assert nearest is not None
    assert nearest.describe(full) == "measured on NVIDIA H200"
    assert nearest.steps_per_second > 150
    apart = [each for each in rates if not each.step.weak_gradient]
    assert {each.method for each in apart} == {"FullMatch"}
    broken = tmp_path / "engine.jsonl"
    broken.write_text(json.dumps({"data": "cifar10"}))
    with pytest.raises(UserError, match=r"algorithm is missing.*measure again"):
        benchmark_rates(broken)
