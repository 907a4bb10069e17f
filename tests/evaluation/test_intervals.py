"""The interval of an accuracy against scipy's."""

import pytest
from scipy.stats import binomtest, norm

from fullmatch.evaluation.intervals import Z, wilson_interval


def test_z() -> None:
    assert pytest.approx(norm.ppf(0.975), abs=1e-12) == Z


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (1, 10), (5, 10), (97, 100), (500, 500)])
def test_wilson_against_scipy(hits: int, count: int) -> None:
    low, high = wilson_interval(hits / count, count)
    expected = binomtest(hits, count).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert -1e-12 <= low <= hits / count + 1e-12
    assert hits / count - 1e-12 <= high <= 1 + 1e-12
