"""Fused passes agree with the plain layers; without a GPU, an interpreter runs the kernels."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.models.kernels import (
    convolution_triton,
    fused_pass,
    normalization_triton,
    weight_gradient_triton,
)
from fullmatch.models.kernels.batch_norm import OnePassBatchNorm
from fullmatch.models.kernels.device import HOPPER
from fullmatch.models.kernels.fused_pass import FusedPass, convolve_stem, is_narrow
from fullmatch.models.kernels.synchronized import synchronize_batch_norms
from tests.models.kernels.tensors import (
    BACKEND,
    CUDA,
    DEVICE,
    DTYPE,
    EPS,
    IMAGES,
    SUMS,
    assert_near,
    convolution_inputs,
    normalization_inputs,
    relative_distance,
)

CONVOLUTIONS: dict[str, Any] = (
    {"rtol": 0.02, "atol": 0.02} if CUDA else {"rtol": 1e-4, "atol": 1e-3}
)
Sides = tuple[Tensor, Tensor]  # a sum and its activation


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Switches the kernels on, whatever the device."""
    return lambda: monkeypatch.setattr(fused_pass, "use_kernels", lambda x: True)


def conv3x3(inputs: int, outputs: int, stride: int = 1, bias: bool = False) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=bias)


def batch_norm(channels: int) -> OnePassBatchNorm:
    return OnePassBatchNorm(channels, eps=EPS, momentum=0.1).to(DEVICE)


def test_which_convolutions_are_narrow() -> None:
    assert is_narrow(conv3x3(16, 32))
    assert is_narrow(conv3x3(32, 32))
    assert not is_narrow(conv3x3(16, 32, stride=2))
    assert not is_narrow(conv3x3(16, 32, bias=True))
    assert not is_narrow(conv3x3(64, 64))
    assert not is_narrow(conv3x3(32, 16))
    assert not is_narrow(nn.Conv2d(16, 32, 1, bias=False))


def test_synchronized_norms_are_not_fused(with_kernels: Callable[[], None]) -> None:
    with_kernels()
    x = torch.zeros(2, 16, 4, 4)
    for by_torch in (False, True):
        norm = batch_norm(16)
        assert fused_pass.fuses(norm, x)
        synchronize_batch_norms(norm, by_torch=by_torch)
        assert not fused_pass.fuses(norm, x)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("compiled", [False, True])
def test_stem(
    channels: int,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
    with_kernels: Callable[[], None],
) -> None:
    images, gradient, _ = convolution_inputs(2, 16, channels, 9, 7)
    stem = conv3x3(channels, 16).to(DEVICE)

    def run(convolve: Callable[[nn.Conv2d, Tensor], Tensor]) -> Sides:
        stem.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16, enabled=CUDA):
            result = convolve(stem, images.float())
        (result * gradient).float().sum().backward()
        assert stem.weight.grad is not None
        return result.detach(), stem.weight.grad

    expected = run(lambda conv, x: conv(x))
    calls: list[torch.Size] = []
    kernel = convolution_triton.convolution

    def record(x: Tensor, weight: Tensor) -> Tensor:
        calls.append(x.shape)
        return kernel(x, weight)

    monkeypatch.setattr(convolution_triton, "convolution", record)
    run(convolve_stem)
    assert not calls
    with_kernels()
    compile_options: dict[str, Any] = {"fullgraph": True, "backend": BACKEND}
    actual = run(torch.compile(convolve_stem, **compile_options) if compiled else convolve_stem)
    assert calls == [(2, 4, 9, 7)]
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **CONVOLUTIONS)
    # The plain layer runs where the kernels do not fit, or have no gradient of the images.
    convolve_stem(stem, images.float().requires_grad_())
    for other_stem in (conv3x3(3, 16, bias=True), conv3x3(3, 32), conv3x3(5, 16)):
        x = torch.zeros(1, other_stem.in_channels, 4, 4)
        assert torch.equal(convolve_stem(other_stem, x), other_stem(x))
    assert len(calls) == 1


def normalize(norm: OnePassBatchNorm, x: Tensor, residual: Tensor | None) -> Sides:
    fused = FusedPass((), x)
    result = fused.normalize(norm, x, residual)
    fused.finish()
    return result


def run_normalization(
    work: Callable[[OnePassBatchNorm, Tensor, Tensor | None], Sides],
    norm: OnePassBatchNorm,
    adds: bool,
) -> list[Tensor]:
    """Outputs, gradients and statistics for a loss that reads both outputs."""
    x, residual, weight, bias = normalization_inputs(3, 16, 4, 8)
    with torch.no_grad():
        norm.weight.copy_(weight)
        norm.bias.copy_(bias)
    leaves = [tensor.clone().requires_grad_() for tensor in (x, residual)[: 1 + adds]]
    inputs = [leaf * 1 for leaf in leaves]  # not leaves: their gradients may be overwritten
    norm.zero_grad()
    total, active = work(norm, inputs[0], inputs[1] if adds else None)
    (total * 0.25 + active.square()).float().sum().backward()
    tensors = [total, active, *(leaf.grad for leaf in leaves), norm.weight.grad, norm.bias.grad]
    tensors += [norm.running_mean, norm.running_var]
    assert all(tensor is not None for tensor in tensors)
    return [tensor.detach().clone() for tensor in tensors if tensor is not None]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_normalize(
    adds: bool,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
    with_kernels: Callable[[], None],
) -> None:
    plain = batch_norm(16)
    norm = deepcopy(plain)
    expected = run_normalization(normalize, plain, adds)
    calls: list[bool] = []
    kernel = normalization_triton.normalize

    def record(*arguments: Any) -> Any:
        calls.append(True)
        return kernel(*arguments)

    monkeypatch.setattr(normalization_triton, "normalize", record)
    with_kernels()
    work = torch.compile(normalize, fullgraph=True, backend=BACKEND) if compiled else normalize
    actual = run_normalization(work, norm, adds)
    assert calls
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert_near(one, other, SUMS if index > 1 else IMAGES, str(index))


def convolve_and_normalize(
    conv: nn.Conv2d, norm: OnePassBatchNorm, x: Tensor, residual: Tensor | None
) -> Sides:
    fused = FusedPass((), x)
    result = fused.convolve_and_normalize(conv, x, residual, norm)
    fused.finish()
    return result


@pytest.mark.no_cover  # it would double the time of the interpreter
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("inputs", [16, 32])
@pytest.mark.parametrize(
    ("shape", "compiled"),
    [((3, 5, 12), True), ((3, 5, 12), False), ((8, 8, 32), False), ((9, 5, 32), False)],
)
def test_convolve_and_normalize(
    adds: bool,
    compiled: bool,
    inputs: int,
    shape: tuple[int, int, int],
    with_kernels: Callable[[], None],
) -> None:
    """Half of a block by kernels, against PyTorch in float64."""
    torch.manual_seed(0)
    count, *side = shape
    residual, _, weight, bias = normalization_inputs(count, 32, *side)
    x = normalization_inputs(count, inputs, *side)[1]
    conv, norm = conv3x3(inputs, 32).to(DEVICE), batch_norm(32)
    with torch.no_grad():
        norm.weight.copy_(weight)
        norm.bias.copy_(bias)
        conv.weight.copy_(conv.weight.bfloat16().float())

    def run(conv: nn.Conv2d, norm: OnePassBatchNorm, dtype: torch.dtype) -> list[Tensor]:
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (x, residual)[: 1 + adds]]
        tensors = [leaf * 1 for leaf in leaves]
        work = convolve_and_normalize
        if compiled and dtype == DTYPE:
            torch._dynamo.reset()  # the compiler limits the number of shapes per function
            work = torch.compile(work, fullgraph=True, backend=BACKEND)
        total, active = work(conv, norm, tensors[0], tensors[1] if adds else None)
        (total * 0.25 + active.square()).sum().backward()
        results = [total, active, *(leaf.grad for leaf in leaves), conv.weight.grad]
        results += [norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
        return [result.detach().double() for result in results if result is not None]

    expected = run(deepcopy(conv).double(), deepcopy(norm).double(), torch.float64)
    with_kernels()
    actual = run(conv, norm, DTYPE)
    assert len(actual) == len(expected) == 8 + adds
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert relative_distance(one, other) < (0.02 if CUDA else 1e-5), index


class Layers(nn.Module):
    """Three convolutions in a fused pass; the middle one is narrow and rounds its own weight."""

    def __init__(self) -> None:
        super().__init__()
        layers = (nn.Conv2d(3, 16, 1, bias=False), conv3x3(16, 32), conv3x3(32, 8))
        self.layers = nn.ModuleList(layers).to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        fused = FusedPass(self.layers.modules(), x)
        # Back to float32, because not every CPU computes in bfloat16.
        fused.rounded.update({c: w.float() for c, w in fused.rounded.items()})
        for layer in self.layers:
            x = fused.convolve(layer, x)  # type: ignore[arg-type]
        fused.finish()
        return x


class RoundedOneByOne(nn.Module):
    def __init__(self, network: Layers) -> None:
        super().__init__()
        self.layers = network.layers

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            assert isinstance(layer, nn.Conv2d)
            weight = layer.weight if is_narrow(layer) else layer.weight.bfloat16().float()
            x = layer._conv_forward(x, weight, None)
        return x


def run_with_gradients(network: nn.Module, images: Tensor) -> list[Tensor]:
    network.zero_grad()
    result = network(images)
    result.square().sum().backward()
    return [result.detach(), *(p.grad for p in network.parameters() if p.grad is not None)]


@pytest.mark.parametrize("compiled", [False, True])
def test_weights_are_rounded_together(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, with_kernels: Callable[[], None]
) -> None:
    torch.manual_seed(0)
    network, images = Layers(), torch.randn(2, 3, 5, 4)
    expected = run_with_gradients(RoundedOneByOne(network), images)
    with_kernels()
    monkeypatch.setattr(fused_pass, "convolution", lambda x, w: F.conv2d(x, w, padding=1))
    work: Any = torch.compile(network, fullgraph=True, backend="aot_eager") if compiled else network
    for actual, other in zip(run_with_gradients(work, images), expected, strict=True):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, other, rtol=0, atol=0)


def test_without_kernels_the_plain_layers_run() -> None:
    network, images = Layers(), torch.randn(2, 3, 5, 4)
    assert not FusedPass(network.modules(), images).rounded
    expected = images
    for layer in network.layers:
        expected = layer(expected)
    assert torch.equal(network(images), expected)


def kernels_run() -> bool:
    return torch.cuda.get_device_capability()[0] == HOPPER


@pytest.mark.gpu
def test_compiled_convolution_uses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[torch.Size] = []
    kernel = weight_gradient_triton.weight_gradient

    def record(x: Tensor, gradient: Tensor) -> Tensor:
        calls.append(x.shape)
        return kernel(x, gradient)

    monkeypatch.setattr(weight_gradient_triton, "weight_gradient", record)
    layer = conv3x3(32, 32).to("cuda").to(memory_format=torch.channels_last)
    x, _, _ = convolution_inputs(3, 32, 32, 8, 8)

    def convolve(x: Tensor) -> Tensor:
        return FusedPass((), x).convolve(layer, x)

    def run(work: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        leaf = x.clone().requires_grad_()
        layer.weight.grad = None
        result = work(leaf)
        result.square().sum().backward()
        assert leaf.grad is not None
        assert layer.weight.grad is not None
        return result.detach(), leaf.grad, layer.weight.grad

    with torch.autocast("cuda", torch.bfloat16):
        expected = run(convolve)
        assert not calls
        actual = run(torch.compile(convolve, fullgraph=True))
    assert bool(calls) == kernels_run()
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **CONVOLUTIONS)


@pytest.mark.gpu
def test_compiled_normalization_uses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[torch.Size] = []
    kernel = normalization_triton.gradients

    def record(x: Tensor, *others: Any) -> Any:
        calls.append(x.shape)
        return kernel(x, *others)

    monkeypatch.setattr(normalization_triton, "gradients", record)
    norm = batch_norm(16)
    run_normalization(normalize, norm, True)
    assert not calls
    run_normalization(torch.compile(normalize, fullgraph=True), norm, True)
    assert bool(calls) == kernels_run()
