"""The weight gradient of our own against PyTorch's; without a GPU, Triton's interpreter runs it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

from fullmatch.models import convolution, kernels
from fullmatch.models.convolution import NARROW, WIDEST, Conv3x3

CUDA = torch.cuda.is_available()
NEAR = {"rtol": 0.02, "atol": 0.02} if CUDA else {"rtol": 1e-4, "atol": 1e-3}  # bfloat16 or float32


def operands(count: int, outputs: int, inputs: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Input and gradient, of numbers that bfloat16 holds; the interpreter knows float32 alone."""
    torch.manual_seed(0)
    shapes = (count, inputs, height, width), (count, outputs, height, width)
    return tuple(last(torch.randn(shape).bfloat16()) for shape in shapes)


def last(x: Tensor) -> Tensor:
    x = x.to("cuda" if CUDA else "cpu", torch.bfloat16 if CUDA else torch.float32)
    return x.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("count", "height", "width"),
    [(4, 4, 32), (5, 3, 32), (3, 2, 16), (1, 1, 1), (2, 3, 7), (3, 2, 24), (1, 2, WIDEST)],
)
@pytest.mark.parametrize(("outputs", "inputs"), sorted(NARROW))
def test_kernel(count: int, height: int, width: int, outputs: int, inputs: int) -> None:
    x, gradient = operands(count, outputs, inputs, height, width)
    shape = (outputs, inputs, 3, 3)
    wanted = conv2d_weight(x.double(), shape, gradient.double(), padding=1)
    found = kernels.weight_gradient(x, gradient)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


def gradients(work: Callable[[Tensor], Tensor], layer: Conv3x3, x: Tensor) -> tuple[Tensor, ...]:
    leaf = x.clone().requires_grad_()
    layer.weight.grad = None
    result = work(leaf)
    result.square().sum().backward()
    assert leaf.grad is not None and layer.weight.grad is not None
    return result.detach(), leaf.grad, layer.weight.grad


@pytest.mark.parametrize("compiled", [False, True])
def test_operator_has_the_gradients_of_a_convolution(compiled: bool) -> None:
    x, _ = operands(2, 32, 16, 3, 8)
    layer = Conv3x3(16, 32).to(x.device, x.dtype, memory_format=torch.channels_last)

    def ours(x: Tensor) -> Tensor:
        result: Tensor = convolution.convolution(x, layer.weight, layer.weight.detach())
        return result

    found = gradients(torch.compile(ours, fullgraph=True) if compiled else ours, layer, x)
    for one, other in zip(found, gradients(layer, layer, x), strict=True):
        torch.testing.assert_close(one, other, **NEAR)


def test_operator_is_well_defined() -> None:
    x, gradient = operands(2, 32, 16, 3, 8)
    weight = last(torch.randn(32, 16, 3, 3))
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    weighted = weight.clone().requires_grad_()
    torch.library.opcheck(
        convolution.convolution, (x.requires_grad_(), weighted, weight), test_utils=tests
    )
    torch.library.opcheck(convolution.weight_gradient, (x.detach(), gradient), test_utils=tests)


def test_layer_is_a_plain_convolution_outside_compiled_training() -> None:
    x, _ = operands(2, 32, 16, 4, 8)
    layer = Conv3x3(16, 32).to(x.device, x.dtype)
    assert torch.equal(layer(x), F.conv2d(x, layer.weight, padding=1))
    assert Conv3x3(16, 32).narrow
    assert not Conv3x3(16, 32, stride=2).narrow
    assert not Conv3x3(16, 32, bias=True).narrow
    assert not Conv3x3(64, 64).narrow
    assert not Conv3x3(32, 16).narrow


@pytest.mark.gpu
def test_compiled_training_uses_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Size] = []
    own = kernels.weight_gradient

    def watched(x: Tensor, gradient: Tensor) -> Tensor:
        seen.append(x.shape)
        return own(x, gradient)

    monkeypatch.setattr(kernels, "weight_gradient", watched)
    layer = Conv3x3(32, 32).to("cuda", memory_format=torch.channels_last)
    x, _ = operands(3, 32, 32, 8, 8)
    with torch.autocast("cuda", torch.bfloat16):
        eager = gradients(layer, layer, x)
        assert not seen
        found = gradients(torch.compile(layer, fullgraph=True), layer, x)
    assert bool(seen) == (torch.cuda.get_device_capability()[0] == convolution.HOPPER)
    for one, other in zip(found, eager, strict=True):
        torch.testing.assert_close(one, other, **NEAR)
