"""Normalization kernels against PyTorch in float64; without a GPU, an interpreter runs them."""

import pytest
import torch
from torch.nn import functional as F

from fullmatch.models.kernels import normalization_triton as kernels
from fullmatch.models.kernels.layout import channels_last
from fullmatch.models.wide_resnet import SLOPE
from tests.models.kernels.tensors import EPS, IMAGES, SUMS, assert_near, normalization_inputs

SHAPES = [(4, 8, 3, 5), (3, 16, 16, 16), (2, 32, 40, 33), (5, 128, 8, 8), (1, 512, 2, 3)]
TABLE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adds", [False, True])
def test_normalization_and_its_gradients(shape: tuple[int, ...], adds: bool) -> None:
    x, residual, weight, bias = normalization_inputs(*shape)
    total, active, statistics = kernels.normalize(
        x, residual if adds else None, weight, bias, EPS, SLOPE
    )
    exact = (x + residual if adds else x).double().requires_grad_()
    scale, shift = (parameter.double().requires_grad_() for parameter in (weight, bias))
    normalized = F.batch_norm(exact, None, None, scale, shift, training=True, momentum=0, eps=EPS)
    expected = F.leaky_relu(normalized, SLOPE)
    assert_near(total, exact, {"rtol": 0, "atol": 0}, "sum")
    assert_near(active, expected, IMAGES, "active")
    assert active.is_contiguous(memory_format=torch.channels_last)
    assert_near(statistics[0], exact.mean(dim=(0, 2, 3)), TABLE, "mean")
    for row, correction in ((1, 0), (4, 1)):
        variance = exact.var((0, 2, 3), correction=correction)
        assert_near(statistics[row], variance, TABLE, "variance")
    gradient, other = channels_last(residual / 2), channels_last(x / 4)
    expected.backward(gradient.double())
    of_sum, of_weight, of_bias = kernels.gradients(
        total, gradient, other if adds else None, statistics, EPS, SLOPE
    )
    assert exact.grad is not None
    expected_of_sum = exact.grad + other.double() if adds else exact.grad
    assert_near(of_sum, expected_of_sum, IMAGES, "gradient of the sum")
    for actual, parameter in zip((of_weight, of_bias), (scale, shift), strict=True):
        assert parameter.grad is not None
        assert actual.dtype == torch.float32
        assert_near(actual, parameter.grad, SUMS, "gradient of weight or bias")


def test_a_constant_channel_becomes_its_bias() -> None:
    x, _, weight, bias = normalization_inputs(4, 8, 3, 5)
    x.fill_(3.0)
    _, active, statistics = kernels.normalize(x, None, weight, bias, EPS, SLOPE)
    assert not statistics[1].any()
    assert_near(active[0, :, 0, 0], F.leaky_relu(bias, SLOPE), IMAGES, "active")
