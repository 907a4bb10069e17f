"""Intervals and verdicts against textbooks and scipy."""

import pytest
from scipy.stats import binomtest, norm

from fullmatch.evaluation.summary import Z, summary, wilson


def test_z() -> None:
    assert pytest.approx(norm.ppf(0.975), abs=1e-12) == Z


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (1, 10), (5, 10), (97, 100), (500, 500)])
def test_wilson_against_scipy(hits: int, count: int) -> None:
    low, high = wilson(hits / count, count)
    expected = binomtest(hits, count).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert -1e-12 <= low <= hits / count + 1e-12 and hits / count - 1e-12 <= high <= 1 + 1e-12


def scores(top1: float, count: int = 50) -> dict[str, object]:
    right = round(top1 * count)
    return {"top1": top1, "ece": 0.1, "confusion": [[right, count - right], [0, 0]]}


def test_summary_says_how_each_number_was_chosen() -> None:
    curve = [{"evaluation": {"teacher": {"top1": at / 100}}} for at in range(30)]
    records = [{"step": 1}, *curve]
    found = summary({"teacher": scores(0.5)}, records, benchmark=True)["teacher"]
    assert found["last"] == 0.5 and found["interval"] == wilson(0.5, 50)
    assert found["median_last_20"] == pytest.approx(0.195)  # of 0.10 to 0.29
    assert found["best_chosen_on_test"] == 0.29 and found["ece"] == 0.1


def test_own_pictures_have_no_best() -> None:
    found = summary({"teacher": scores(0.5)}, [{"step": 1}], benchmark=False)["teacher"]
    assert "best_chosen_on_test" not in found and "median_last_20" not in found
