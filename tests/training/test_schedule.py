"""The learning rate at published points."""

import pytest

from fullmatch.training.schedule import learning_rate


@pytest.mark.parametrize(
    ("share", "factor"),
    [(0, 1), (0.25, 0.9415440652), (0.5, 0.7730104534), (0.75, 0.5141027442), (1, 0.1950903220)],
)
def test_published_values(share: float, factor: float) -> None:
    total = 2**20
    rate = learning_rate(int(share * total), total, base=0.03, cosine=7 / 16)
    assert rate == pytest.approx(0.03 * factor, abs=1e-11)


@pytest.mark.parametrize(("cosine", "last"), [(63 / 128, 0.0245412285), (5 / 16, 0.5555702330)])
def test_variants(cosine: float, last: float) -> None:
    assert learning_rate(100, 100, base=1.0, cosine=cosine) == pytest.approx(last, abs=1e-10)


def test_falls_and_is_never_negative() -> None:
    rates = [learning_rate(step, 100, base=1.0, cosine=0.7) for step in range(101)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0
