"""A difference is called clear only when it is."""

import math

import pytest
import torch
from scipy.stats import binomtest

from fullmatch.evaluation.intervals import Z
from fullmatch.evaluation.paired import compare_paired, sign_test
from fullmatch.storage.result import Verdict


@pytest.mark.parametrize(
    ("better", "worse"), [(0, 0), (4, 0), (9, 2), (7, 7), (1, 30), (9000, 9100)]
)
def test_sign_test_is_the_binomial_one(better: int, worse: int) -> None:
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert math.isclose(sign_test(better, worse), expected)


def hits(right: int, wrong: int) -> torch.Tensor:
    return torch.tensor([1.0] * right + [0.0] * wrong)


def test_verdicts() -> None:
    assert compare_paired(hits(50, 10), hits(30, 30)).verdict is Verdict.HELPED
    assert compare_paired(hits(30, 30), hits(50, 10)).verdict is Verdict.HURT
    assert compare_paired(hits(31, 29), hits(30, 30)).verdict is Verdict.UNCLEAR
    same = compare_paired(hits(9, 0), hits(9, 0))
    assert same.verdict is Verdict.UNCLEAR
    assert same.interval[0] < -0.2
    assert same.interval[1] > 0.2


def test_counts() -> None:
    comparison = compare_paired(torch.tensor([1.0, 0.5, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    assert (comparison.better, comparison.worse, comparison.images) == (1, 1, 3)
    assert comparison.p_value == 1
    assert comparison.gain == pytest.approx(1 / 6)


def test_five_pictures_are_not_enough() -> None:
    comparison = compare_paired(hits(35, 25), hits(30, 30))
    assert comparison.interval[0] > 0  # the interval by itself would say that it helped
    assert comparison.verdict is Verdict.UNCLEAR


def test_chance_is_rarely_called_clear() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(400, 2, 40, generator=generator) < 0.7
    verdicts = [compare_paired(a.double(), b.double()).verdict for a, b in draws]
    assert sum(verdict is not Verdict.UNCLEAR for verdict in verdicts) <= 0.05 * len(verdicts)


def test_the_interval_is_walds_with_one_more_difference() -> None:
    """The mean of the differences -1, 0, 1 and its standard error, as if there were one more."""
    ours = torch.tensor([1.0] * 40 + [0.0] * 15 + [1.0] * 445).double()
    theirs = torch.tensor([0.0] * 40 + [1.0] * 15 + [1.0] * 445).double()
    comparison = compare_paired(ours, theirs)
    values = (ours - theirs).numpy()
    half = Z * math.sqrt(values.var() * 500 + 1) / 500
    assert comparison.gain == pytest.approx(values.mean())
    assert comparison.interval == pytest.approx((values.mean() - half, values.mean() + half))
    assert comparison.images == 500
    low, high = compare_paired(ours, ours).interval
    assert low < 0 < high  # no difference at all does not prove that they are equally good
