"""Convolution kernels against PyTorch in float64; without a GPU, Triton's interpreter runs them."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

from fullmatch.models.kernels import convolution_triton as kernels
from fullmatch.models.kernels import weight_gradient_triton as weight_kernels
from fullmatch.models.kernels.fused_pass import NARROW, STEM
from tests.models.kernels.tensors import CUDA, convolution_inputs

ROUNDED: dict[str, Any] = {"rtol": 0.004, "atol": 1e-3} if CUDA else {"rtol": 1e-4, "atol": 1e-4}
SHAPES = [(4, 4, 32), (5, 3, 32), (3, 2, 16), (1, 1, 1), (2, 3, 7), (3, 2, 24), (1, 2, 130)]


@pytest.mark.no_cover  # it would double the time of the interpreter
@pytest.mark.parametrize(("count", "height", "width"), SHAPES)
@pytest.mark.parametrize(("outputs", "inputs"), sorted(NARROW))
def test_convolution_and_its_gradients(
    count: int, height: int, width: int, outputs: int, inputs: int
) -> None:
    x, gradient, weight = convolution_inputs(count, outputs, inputs, height, width)
    exact = x.double(), weight.double(), gradient.double()
    for actual, expected in (
        (kernels.convolution(x, weight), F.conv2d(*exact[:2], padding=1)),
        (
            kernels.convolution(gradient, weight, flipped=True),
            conv2d_input(x.shape, exact[1], exact[2], padding=1),
        ),
    ):
        assert actual.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(actual.double(), expected, **ROUNDED)
    check_weight_gradient(x, gradient)


def check_weight_gradient(x: Tensor, gradient: Tensor) -> None:
    shape = (gradient.shape[1], x.shape[1], 3, 3)
    expected = conv2d_weight(x.double(), shape, gradient.double(), padding=1)
    actual = weight_kernels.weight_gradient(x, gradient)
    assert actual.is_contiguous(memory_format=torch.channels_last)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("count", "height", "width"), SHAPES)
def test_first_convolution(count: int, height: int, width: int) -> None:
    x, gradient, weight = convolution_inputs(count, *STEM, height, width)
    expected = F.conv2d(x.double(), weight.double(), padding=1)
    torch.testing.assert_close(kernels.convolution(x, weight).double(), expected, **ROUNDED)
    check_weight_gradient(x, gradient)
