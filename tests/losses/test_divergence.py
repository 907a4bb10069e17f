"""Divergences: specified values, limits, and properties."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from fullmatch.losses import (
    alpha_divergence,
    kullback_leibler,
    power_mean,
    skewed_jensen_shannon,
)
from tests.reference.alphamatch import divergence
from tests.reference.npmatch import jensen_shannon

P = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)
R = torch.tensor([[0.5, 0.4, 0.1]], dtype=torch.float64)


def test_kullback_leibler_agrees_with_torch_and_accepts_zeros() -> None:
    torch.manual_seed(0)
    logits, probs = torch.randn(5, 4), torch.randn(5, 4).softmax(dim=1)
    expected = F.kl_div(logits.log_softmax(dim=1), probs, reduction="batchmean")
    torch.testing.assert_close(kullback_leibler(logits, probs), expected)
    certain = torch.tensor([[1.0, 0.0, 0.0]])
    assert float(kullback_leibler(torch.zeros(1, 3), certain)) == pytest.approx(math.log(3))
    with pytest.raises(ValueError, match="probs"):
        kullback_leibler(logits, probs[:2])


def test_power_mean_of_order_half() -> None:
    actual = power_mean(torch.stack([P, R]).log(), 0.5).exp()
    expected = torch.tensor([[0.6035136678, 0.2951923364, 0.1012939958]]).double()
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", [1.0, 0.0])
def test_power_mean_between_arithmetic_and_geometric(order: float) -> None:
    rows = torch.stack([P, R])
    mean = rows.mean(dim=0) if order else rows.log().mean(dim=0).exp()
    expected = mean / mean.sum()
    torch.testing.assert_close(power_mean(rows.log(), order).exp(), expected)
    torch.testing.assert_close(
        power_mean(rows.log(), order + 1e-6).exp(), expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("alpha", [-0.5, 0.3, 0.5, 1.5, 2.0])
def test_alpha_divergence_agrees_with_a_loop_and_is_zero_at_equality(alpha: float) -> None:
    actual = float(alpha_divergence(P.log(), R.log(), alpha))
    assert actual == pytest.approx(divergence(P[0].numpy(), R[0].numpy(), alpha))
    assert actual > 0
    assert float(alpha_divergence(P.log(), P.log(), alpha)) == pytest.approx(0, abs=1e-12)
    assert actual == pytest.approx(float(alpha_divergence(R.log(), P.log(), 1 - alpha)))


def test_alpha_divergence_has_kullback_leibler_as_limits() -> None:
    forward = float((P * (P / R).log()).sum())
    backward = float((R * (R / P).log()).sum())
    for alpha in (1.0, 1 + 1e-6, 1 - 1e-6):
        assert float(alpha_divergence(P.log(), R.log(), alpha)) == pytest.approx(forward, rel=1e-4)
    for alpha in (0.0, 1e-6, -1e-6):
        assert float(alpha_divergence(P.log(), R.log(), alpha)) == pytest.approx(backward, rel=1e-4)


def test_alpha_divergence_gradient() -> None:
    """-(1 / a) E_p[(p / r)^(a - 1) grad log r]."""
    logits = R.log().requires_grad_()
    alpha_divergence(P.log(), logits.log_softmax(dim=1), 1.5).backward()
    weights = P * (P / R) ** 0.5
    expected = -(weights - R * weights.sum()) / 1.5
    torch.testing.assert_close(logits.grad, expected)


def test_alpha_divergence_names_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match="log_r"):
        alpha_divergence(P, torch.cat([R, R]), 0.5)


@pytest.mark.parametrize("skew", [0.0, 0.3, 0.5, 1.0])
def test_skewed_jensen_shannon(skew: float) -> None:
    torch.manual_seed(0)
    m, n = torch.randn(2, 5, dtype=torch.float64)
    v, w = torch.rand(2, 5, dtype=torch.float64) + 0.1
    actual = float(skewed_jensen_shannon(m, v, n, w, torch.tensor(skew, dtype=torch.float64)))
    assert actual == pytest.approx(jensen_shannon(m.numpy(), v.numpy(), n.numpy(), w.numpy(), skew))
    middle_v = 1 / ((1 - skew) / v + skew / w)
    middle_m = middle_v * ((1 - skew) * m / v + skew * n / w)
    middle = Normal(middle_m, middle_v.sqrt())
    expected = (1 - skew) * kl_divergence(Normal(m, v.sqrt()), middle)
    expected = expected + skew * kl_divergence(Normal(n, w.sqrt()), middle)
    assert actual == pytest.approx(float(expected.sum()), abs=1e-9)
    assert float(skewed_jensen_shannon(m, v, m, v, torch.tensor(skew))) == pytest.approx(
        0, abs=1e-6
    )


def test_low_precision_gaussians_are_computed_in_float32() -> None:
    torch.manual_seed(0)
    mean, variance = torch.randn(64).bfloat16(), (torch.rand(64) + 0.5).bfloat16()
    other_mean, other_variance, half = mean + 0.1, variance + 0.1, torch.tensor(0.5)
    actual = skewed_jensen_shannon(mean, variance, other_mean, other_variance, half)
    expected = skewed_jensen_shannon(
        mean.double(), variance.double(), other_mean.double(), other_variance.double(), half
    )
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=0)
