"""Convolutions of our own against PyTorch's; without a GPU, Triton's interpreter runs them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._inductor import lowering
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight
from torch.torch_version import TorchVersion

from fullmatch.models.kernels import convolution
from fullmatch.models.kernels import convolution_triton as kernels
from fullmatch.models.kernels import device as gpu
from fullmatch.models.kernels import weight_gradient_triton as weight_kernels
from fullmatch.models.kernels.convolution import NARROW, THIN, Conv3x3, Stem

CUDA = torch.cuda.is_available()
BACKEND = "inductor" if CUDA else "aot_eager"  # which needs no C++ compiler
NEAR = {"rtol": 0.02, "atol": 0.02} if CUDA else {"rtol": 1e-4, "atol": 1e-3}  # bfloat16 or float32


def operands(count: int, outputs: int, inputs: int, height: int, width: int) -> tuple[Tensor, ...]:
    """Input and gradient, of numbers that bfloat16 holds; the interpreter knows float32 alone."""
    torch.manual_seed(0)
    shapes = (count, inputs, height, width), (count, outputs, height, width)
    return tuple(last(torch.randn(shape).bfloat16()) for shape in shapes)


def last(x: Tensor) -> Tensor:
    x = x.to("cuda" if CUDA else "cpu", torch.bfloat16 if CUDA else torch.float32)
    return x.contiguous(memory_format=torch.channels_last)


SHAPES = [(4, 4, 32), (5, 3, 32), (3, 2, 16), (1, 1, 1), (2, 3, 7), (3, 2, 24), (1, 2, 130)]


@pytest.mark.parametrize(("count", "height", "width"), SHAPES)
@pytest.mark.parametrize(("outputs", "inputs"), sorted(NARROW))
def test_kernels(count: int, height: int, width: int, outputs: int, inputs: int) -> None:
    x, gradient = operands(count, outputs, inputs, height, width)
    weight = last(torch.randn(outputs, inputs, 3, 3).bfloat16())
    exact = x.double(), weight.double(), gradient.double()
    near = {"rtol": 0.004, "atol": 1e-3} if CUDA else {"rtol": 1e-4, "atol": 1e-4}  # as rounded
    for found, wanted in (
        (kernels.convolution(x, weight), F.conv2d(*exact[:2], padding=1)),
        (
            kernels.convolution(gradient, weight, flipped=True),
            conv2d_input(x.shape, exact[1], exact[2], padding=1),
        ),
    ):
        assert found.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(found.double(), wanted, **near)
    check_weight_gradient(x, gradient)


def check_weight_gradient(x: Tensor, gradient: Tensor) -> None:
    shape = (gradient.shape[1], x.shape[1], 3, 3)
    wanted = conv2d_weight(x.double(), shape, gradient.double(), padding=1)
    found = weight_kernels.weight_gradient(x, gradient)
    assert found.is_contiguous(memory_format=torch.channels_last) and found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("count", "height", "width"), SHAPES)
def test_kernels_of_a_first_convolution(count: int, height: int, width: int) -> None:
    x, gradient = operands(count, *THIN, height, width)
    weight = last(torch.randn(*THIN, 3, 3).bfloat16())
    wanted = F.conv2d(x.double(), weight.double(), padding=1)
    near = {"rtol": 0.004, "atol": 1e-3} if CUDA else {"rtol": 1e-4, "atol": 1e-4}  # as rounded
    torch.testing.assert_close(kernels.convolution(x, weight).double(), wanted, **near)
    check_weight_gradient(x, gradient)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("compiled", [False, True])
def test_stem_by_kernels_is_the_convolution(
    channels: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, slope = operands(2, 16, channels, 9, 7)
    stem = Stem(channels, 16).to(images.device)

    def results(work: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        stem.zero_grad()
        with torch.autocast(images.device.type, torch.bfloat16, enabled=CUDA):
            result = work(images.float())
        (result * slope).float().sum().backward()
        assert stem.weight.grad is not None
        return result.detach(), stem.weight.grad

    wanted = results(stem)
    seen: list[torch.Size] = []
    own = kernels.convolution
    monkeypatch.setattr(kernels, "convolution", lambda x, w: (seen.append(x.shape), own(x, w))[1])
    monkeypatch.setattr(convolution, "kernels_for", lambda x: True)
    found = results(torch.compile(stem, fullgraph=True, backend=BACKEND) if compiled else stem)
    assert seen == [(2, 4, 9, 7)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, **NEAR)
    stem(images.float().requires_grad_())  # of which the kernels would have no gradient
    assert len(seen) == 1
    assert not Stem(3, 16, bias=True).thin and not Stem(3, 32).thin and not Stem(5, 16).thin


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
        result: Tensor = convolution.convolution(x, layer.weight)
        return result

    found = gradients(
        torch.compile(ours, fullgraph=True, backend=BACKEND) if compiled else ours, layer, x
    )
    for one, other in zip(found, gradients(layer, layer, x), strict=True):
        torch.testing.assert_close(one, other, **NEAR)


def test_operators_are_well_defined() -> None:
    x, gradient = operands(2, 32, 16, 3, 8)
    weight = last(torch.randn(32, 16, 3, 3))
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for operator, given in (
        (convolution.input_gradient, (gradient, weight)),
        (convolution.weight_gradient, (x, gradient)),
        (convolution.convolution, (x.requires_grad_(), weight.requires_grad_())),
    ):
        torch.library.opcheck(operator, given, test_utils=tests)


def test_layer_is_a_plain_convolution_outside_compiled_training() -> None:
    x, _ = operands(2, 32, 16, 4, 8)
    layer = Conv3x3(16, 32).to(x.device, x.dtype)
    assert torch.equal(layer(x), F.conv2d(x, layer.weight, padding=1))
    assert Conv3x3(16, 32).narrow
    assert not Conv3x3(16, 32, stride=2).narrow
    assert not Conv3x3(16, 32, bias=True).narrow
    assert not Conv3x3(64, 64).narrow
    assert not Conv3x3(32, 16).narrow


def test_asking_for_the_device_can_be_compiled() -> None:
    def asked(x: Tensor) -> Tensor:
        return x + 1 if gpu.measured_on(x.device) else x - 1

    assert torch.compile(asked, fullgraph=True, backend=BACKEND)(torch.zeros(1)) == -1


def test_older_compilers_are_told_of_all_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that describe every operand of an operator that they do not know."""
    assert set(gpu.OPERATORS) >= {"convolution", "normalize", "move_statistics"}
    operators = {getattr(torch.ops.fullmatch, name).default for name in gpu.OPERATORS}
    known = lowering.lowerings
    for one in operators:
        monkeypatch.delitem(known, one, raising=False)
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.13.0"))
    gpu.introduce_operators()
    assert not operators & known.keys()
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.12.1"))
    gpu.introduce_operators()
    gpu.introduce_operators()  # which nobody forbids
    assert operators <= known.keys()


@pytest.mark.gpu
def test_compiled_training_uses_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Size] = []
    own = weight_kernels.weight_gradient

    def watched(x: Tensor, gradient: Tensor) -> Tensor:
        seen.append(x.shape)
        return own(x, gradient)

    monkeypatch.setattr(weight_kernels, "weight_gradient", watched)
    layer = Conv3x3(32, 32).to("cuda", memory_format=torch.channels_last)
    x, _ = operands(3, 32, 32, 8, 8)
    with torch.autocast("cuda", torch.bfloat16):
        eager = gradients(layer, layer, x)
        assert not seen
        found = gradients(torch.compile(layer, fullgraph=True), layer, x)
    assert bool(seen) == (torch.cuda.get_device_capability()[0] == gpu.HOPPER)
    for one, other in zip(found, eager, strict=True):
        torch.testing.assert_close(one, other, **NEAR)
