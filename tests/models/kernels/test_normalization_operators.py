"""Normalization operators are declared correctly: schema, shapes and gradients."""

import torch
from torch import Tensor

from fullmatch.models.kernels import normalization_operators as operators
from fullmatch.models.kernels import normalization_triton as kernels
from fullmatch.models.wide_resnet import SLOPE
from tests.models.kernels.tensors import DEVICE, EPS, OPERATOR_CHECKS, normalization_inputs


def convolution_arguments(residual: Tensor | None) -> list[Tensor | None]:
    x, _, weight, bias = normalization_inputs(2, 32, 3, 8)
    filters = torch.randn(32, 32, 3, 3, device=DEVICE)
    tensors = (x, filters, residual, weight, bias)
    return [None if tensor is None else tensor.requires_grad_() for tensor in tensors]


def test_operators_are_well_defined() -> None:
    x, residual, weight, bias = normalization_inputs(2, 16, 3, 8)
    table = kernels.normalize(x, None, weight, bias, EPS, SLOPE)[2]
    leaves = [tensor.requires_grad_() for tensor in (x, residual, weight, bias)]
    x, gradient = x.detach(), residual.detach()
    wide_residual = normalization_inputs(2, 32, 3, 8)[0]
    for operator, arguments in (
        (operators.normalize, (leaves[0], *leaves[2:], EPS, SLOPE)),
        (operators.add_and_normalize, (*leaves, EPS, SLOPE)),
        (operators.normalization_gradients, (x, gradient, None, table, EPS, SLOPE)),
        (operators.normalization_gradients, (x, gradient, gradient, table, EPS, SLOPE)),
        (operators.move_statistics, ([table[0].clone()], [table[1].clone()], [table], [0.5])),
        (operators.convolve_and_normalize, (*convolution_arguments(None), EPS, SLOPE)),
        (operators.convolve_and_normalize, (*convolution_arguments(wide_residual), EPS, SLOPE)),
    ):
        torch.library.opcheck(operator, arguments, test_utils=OPERATOR_CHECKS)
