"""Convolution operators have the right gradients and are declared correctly."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.models.kernels import convolution_operators as operators
from tests.models.kernels.tensors import (
    BACKEND,
    CUDA,
    DEVICE,
    DTYPE,
    OPERATOR_CHECKS,
    convolution_inputs,
)

NEAR: dict[str, Any] = {"rtol": 0.02, "atol": 0.02} if CUDA else {"rtol": 1e-4, "atol": 1e-3}


def run_with_gradients(
    convolve: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor
) -> tuple[Tensor, ...]:
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    result = convolve(x, weight)
    result.square().sum().backward()
    assert x.grad is not None
    assert weight.grad is not None
    return result.detach(), x.grad, weight.grad


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_a_convolution(compiled: bool) -> None:
    x, _, _ = convolution_inputs(2, 32, 16, 3, 8)
    layer = nn.Conv2d(16, 32, 3, padding=1, bias=False)
    weight = layer.weight.detach().to(DEVICE, DTYPE, memory_format=torch.channels_last)

    def operator(x: Tensor, weight: Tensor) -> Tensor:
        result: Tensor = operators.convolution(x, weight)
        return result

    convolve = torch.compile(operator, fullgraph=True, backend=BACKEND) if compiled else operator
    actual = run_with_gradients(convolve, x, weight)
    expected = run_with_gradients(lambda x, weight: F.conv2d(x, weight, padding=1), x, weight)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **NEAR)


def test_operators_are_well_defined() -> None:
    x, gradient, weight = convolution_inputs(2, 32, 16, 3, 8)
    weights = [torch.randn(16, 3, 1, 1), torch.randn(8, 32, 3, 3)]
    for operator, arguments in (
        (operators.input_gradient, (gradient, weight)),
        (operators.weight_gradient, (x, gradient)),
        (operators.convolution, (x.requires_grad_(), weight.requires_grad_())),
        (operators.round_weights, ([weight.clone().requires_grad_() for weight in weights],)),
        (operators.widen_gradients, ([weight.bfloat16() for weight in weights],)),
    ):
        torch.library.opcheck(operator, arguments, test_utils=OPERATOR_CHECKS)
