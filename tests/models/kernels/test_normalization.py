"""Normalisation of our own against PyTorch's; without a GPU, an interpreter runs its kernels."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.models.kernels import convolution, normalization
from fullmatch.models.kernels import device as gpu
from fullmatch.models.kernels import normalization_operators as operators
from fullmatch.models.kernels import normalization_triton as kernels
from fullmatch.models.kernels.convolution import Conv3x3
from fullmatch.models.kernels.normalization import SLOPE, Norm
from fullmatch.models.kernels.passes import Pass

CUDA = torch.cuda.is_available()
BACKEND = "inductor" if CUDA else "aot_eager"  # which needs no C++ compiler
# Images are bfloat16 on a GPU; the interpreter knows float32 alone.
IMAGES = {"rtol": 0.01, "atol": 0.01} if CUDA else {"rtol": 1e-4, "atol": 1e-4}
SUMS = {"rtol": 0.02, "atol": 0.1} if CUDA else {"rtol": 1e-4, "atol": 1e-3}
EPS = 1e-3
SHAPES = [(4, 8, 3, 5), (3, 16, 16, 16), (2, 32, 40, 33), (5, 128, 8, 8), (1, 512, 2, 3)]
Given = tuple[Tensor, Tensor, Tensor, Tensor]


def given(*shape: int) -> Given:
    """Two paths of numbers that bfloat16 holds, far from the identity; weight and bias."""
    torch.manual_seed(0)
    kind = torch.bfloat16 if CUDA else torch.float32
    paths = (2 * torch.randn(2, *shape) + 0.5).bfloat16().to("cuda" if CUDA else "cpu", kind)
    weight, bias = torch.randn(2, shape[1], device=paths.device)
    return gpu.channels_last(paths[0]), gpu.channels_last(paths[1]), weight, bias


def expected(x: Tensor, path: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    total = x if path is None else x + path
    return total, F.leaky_relu(F.batch_norm(total, None, None, weight, bias, True, 0, EPS), SLOPE)


def close(found: Tensor, wanted: Tensor, near: dict[str, float], what: str) -> None:
    torch.testing.assert_close(
        found.double(), wanted.double(), **near, msg=lambda text: f"{what}: {text}"
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adds", [False, True])
def test_kernels(shape: tuple[int, ...], adds: bool) -> None:
    x, path, weight, bias = given(*shape)
    total, active, found = kernels.normalize(x, path if adds else None, weight, bias, EPS, SLOPE)
    exact = (x + path if adds else x).double().requires_grad_()
    weights = [one.double().requires_grad_() for one in (weight, bias)]
    _, wanted = expected(exact, None, *weights)
    close(total, exact, {"rtol": 0, "atol": 0}, "sum")
    close(active, wanted, IMAGES, "active")
    assert active.is_contiguous(memory_format=torch.channels_last)
    close(found[0], exact.mean(dim=(0, 2, 3)), {"rtol": 1e-4, "atol": 1e-4}, "mean")
    for line, correction in ((1, 0), (4, 1)):
        spread = exact.var((0, 2, 3), correction=correction)
        close(found[line], spread, {"rtol": 1e-4, "atol": 1e-4}, "variance")
    gradient, other = gpu.channels_last(path / 2), gpu.channels_last(x / 4)
    wanted.backward(gradient.double())
    of_sum, of_weight, of_bias = kernels.gradients(
        total, gradient, other if adds else None, found, EPS, SLOPE
    )
    assert exact.grad is not None
    close(of_sum, exact.grad + other.double() if adds else exact.grad, IMAGES, "of the sum")
    for one, leaf in ((of_weight, weights[0]), (of_bias, weights[1])):
        assert leaf.grad is not None and one.dtype == torch.float32
        close(one, leaf.grad, SUMS, "of weight or bias")


def test_a_channel_of_one_number_is_its_bias() -> None:
    x, _, weight, bias = given(4, 8, 3, 5)
    x.fill_(3.0)
    _, active, found = kernels.normalize(x, None, weight, bias, EPS, SLOPE)
    assert not found[1].any()
    close(active[0, :, 0, 0], F.leaky_relu(bias, SLOPE), IMAGES, "active")


def followed(
    work: Callable[..., tuple[Tensor, Tensor]],
) -> Callable[..., tuple[Tensor, Tensor]]:
    """With running statistics that have moved."""

    def whole(*given: object) -> tuple[Tensor, Tensor]:
        batch = Pass((), torch.empty(0))
        result = work(*given, batch)
        batch.end()
        return result

    return whole


def results(
    work: Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]], layer: Norm, adds: bool
) -> list[Tensor]:
    """Outputs, gradients and statistics of a loss that reads both outputs."""
    x, path, weight, bias = given(3, 16, 4, 8)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    leaves = [one.clone().requires_grad_() for one in (x, path)[: 1 + adds]]
    outer = [one * 1 for one in leaves]  # whose gradients nobody owns
    layer.zero_grad()
    total, active = work(outer[0], outer[1] if adds else None)
    (total * 0.25 + active.square()).float().sum().backward()
    parts = [total, active, *(leaf.grad for leaf in leaves), layer.weight.grad, layer.bias.grad]
    parts += [layer.running_mean, layer.running_var]
    assert all(part is not None for part in parts)
    return [part.detach().clone() for part in parts if part is not None]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_layer_by_kernels_is_the_plain_one(
    adds: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Norm(16, eps=EPS, momentum=0.1).to("cuda" if CUDA else "cpu")
    ours = deepcopy(plain)
    wanted = results(followed(plain.activated), plain, adds)
    seen: list[bool] = []
    monkeypatch.setattr(normalization, "kernels_for", lambda x: True)
    own = kernels.normalize
    monkeypatch.setattr(kernels, "normalize", lambda *a: (seen.append(True), own(*a))[1])
    work = followed(ours.activated)
    if compiled:
        work = torch.compile(work, fullgraph=True, backend=BACKEND)
    found = results(work, ours, adds)
    assert seen
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        close(one, other, SUMS if number > 1 else IMAGES, str(number))


def convolved(other: Tensor | None) -> list[Tensor | None]:
    inner, _, weight, bias = given(2, 32, 3, 8)
    filters = torch.randn(32, 32, 3, 3, device=inner.device)
    leaves = (inner, filters, other, weight, bias)
    return [None if one is None else one.requires_grad_() for one in leaves]


def test_operators_are_well_defined() -> None:
    x, path, weight, bias = given(2, 16, 3, 8)
    found = kernels.normalize(x, None, weight, bias, EPS, SLOPE)[2]
    leaves = [one.requires_grad_() for one in (x, path, weight, bias)]
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for operator, arguments in (
        (operators.normalize, (x, *leaves[2:], EPS, SLOPE)),
        (operators.add_and_normalize, (*leaves, EPS, SLOPE)),
        (operators.gradients, (x.detach(), path.detach(), None, found, EPS, SLOPE)),
        (operators.gradients, (x.detach(), path.detach(), path.detach(), found, EPS, SLOPE)),
        (operators.move_statistics, ([found[0].clone()], [found[1].clone()], [found], [0.5])),
        (operators.convolve_and_normalize, (*convolved(None), EPS, SLOPE)),
        (operators.convolve_and_normalize, (*convolved(given(2, 32, 3, 8)[0]), EPS, SLOPE)),
    ):
        torch.library.opcheck(operator, arguments, test_utils=tests)


def test_kernels_are_for_compiled_bfloat16_on_the_gpus_they_were_measured_on() -> None:
    assert not gpu.kernels_for(torch.zeros(1, 8, 2, 2, dtype=torch.bfloat16))
    assert not gpu.measured_on(torch.device("cpu"))
    assert operators.fits(32, 128)
    for channels, numbers in [(24, 96), (4, 16), (2048, 2048), (64, 2**31)]:
        assert not operators.fits(channels, numbers)
    assert gpu.rounded(torch.zeros(1, device="meta")).is_meta


@pytest.mark.gpu
def test_compiled_training_uses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Size] = []
    own = kernels.gradients
    monkeypatch.setattr(kernels, "gradients", lambda x, *a: (seen.append(x.shape), own(x, *a))[1])
    layer = Norm(16, eps=EPS, momentum=0.1).to("cuda")
    work = followed(layer.activated)
    results(work, layer, True)
    assert not seen
    results(torch.compile(work, fullgraph=True), layer, True)
    assert bool(seen) == (torch.cuda.get_device_capability()[0] == gpu.HOPPER)


def test_norm_in_one_pass_is_the_libraries() -> None:
    torch.manual_seed(0)
    plain = Norm(8, eps=1e-3, momentum=0.1)
    nn.init.normal_(plain.weight)
    compiled = deepcopy(plain)
    run = torch.compile(compiled, backend="aot_eager")
    images = 3 * torch.randn(6, 8, 5, 5) + 2
    inputs = [images.clone().requires_grad_() for _ in range(2)]
    slope = torch.randn_like(images)
    for layer, one in zip((plain, run), inputs, strict=True):
        layer(one).backward(slope)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(tensor, compiled.state_dict()[name], rtol=1e-4, atol=1e-5)
    for one, other in [
        (inputs[0].grad, inputs[1].grad),
        (plain.weight.grad, compiled.weight.grad),
        (plain.bias.grad, compiled.bias.grad),
        (plain(images), run(images)),
        (plain(images), nn.BatchNorm2d.forward(plain, images)),
    ]:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("inputs", [16, 32])
@pytest.mark.parametrize("shape", [(3, 5, 12), (8, 8, 32), (9, 5, 32)])
def test_after_a_convolution(
    adds: bool,
    compiled: bool,
    inputs: int,
    shape: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole of a block's half by kernels, against PyTorch with twice the digits."""
    torch.manual_seed(0)
    count, *side = shape
    x, _, weight, bias = given(count, 32, *side)
    inner = given(count, inputs, *side)[1]
    conv = Conv3x3(inputs, 32).to(x.device)
    norm = Norm(32, eps=EPS, momentum=0.1).to(x.device)
    with torch.no_grad():
        norm.weight.copy_(weight)
        norm.bias.copy_(bias)
        conv.weight.copy_(conv.weight.bfloat16().float())

    def ran(conv: Conv3x3, norm: Norm, kind: torch.dtype) -> list[Tensor]:
        leaves = [one.to(kind).requires_grad_() for one in (inner, x)[: 1 + adds]]
        outer = [one * 1 for one in leaves]
        work = followed(norm.after)
        if compiled and kind == x.dtype:
            torch._dynamo.reset()  # which allows so many shapes of one function
            work = torch.compile(work, fullgraph=True, backend=BACKEND)
        total, active = work(conv, outer[0], outer[1] if adds else None)
        (total * 0.25 + active.square()).sum().backward()
        parts = [total, active, *(leaf.grad for leaf in leaves), conv.weight.grad]
        parts += [norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
        return [part.detach().double() for part in parts if part is not None]

    wanted = ran(deepcopy(conv).double(), deepcopy(norm).double(), torch.float64)
    for module in (normalization, convolution):
        monkeypatch.setattr(module, "kernels_for", lambda x: True)
    found = ran(conv, norm, x.dtype)
    assert len(found) == len(wanted) == 8 + adds
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        apart = (one - other).norm() / other.norm()
        assert apart < (0.02 if CUDA else 1e-5), (number, apart)
