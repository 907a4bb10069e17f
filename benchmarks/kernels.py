"""Time our kernels on a GPU against PyTorch's libraries and compiler.

`python benchmarks/kernels.py` needs a GPU on which the kernels run: Hopper, such as an H100.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fullmatch.models.kernels import convolution_triton, weight_gradient_triton
from fullmatch.models.kernels.device import is_hopper
from fullmatch.models.kernels.fused_pass import NARROW
from fullmatch.models.kernels.layout import channels_last
from fullmatch.models.kernels.normalization_operators import add_and_normalize
from fullmatch.models.wide_resnet import EPS, SLOPE

ROUNDS = 20  # calls per CUDA graph, so that the launch does not count
COPIES = 3  # sets of operands, which together are larger than the cache
NORMALIZED = ((32, 1), (64, 2), (128, 4))  # channels, and by how much the side is divided
Activation = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Comparison(NamedTuple):
    """Two ways to compute the same result."""

    name: str
    library: Callable[[], Tensor]
    ours: Callable[[], Tensor]


def compare_convolutions(images: int, outputs: int, inputs: int, side: int) -> Iterator[Comparison]:
    """Yield what a training step does with a convolution."""
    x, gradient = random_images(images, inputs, side), random_images(images, outputs, side)
    weight = torch.randn(outputs, inputs, 3, 3, device=x.device)
    rounded = channels_last(weight.to(x.dtype))

    def library_gradients(*wanted: bool) -> tuple[Tensor, ...]:
        one, none = [1, 1], [0, 0]
        gradients: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            gradient, x, rounded, None, one, one, one, False, none, 1, [*wanted, False]
        )
        return gradients

    name = f"convolution, {inputs} to {outputs}"
    yield Comparison(
        f"{name}: forward",
        lambda: F.conv2d(x, rounded, padding=1),
        lambda: convolution_triton.convolution(x, weight),
    )
    yield Comparison(
        f"{name}: gradient of inputs",
        lambda: library_gradients(True, False)[0],
        lambda: convolution_triton.convolution(gradient, weight, flipped=True),
    )
    yield Comparison(
        f"{name}: gradient of weights",
        lambda: library_gradients(False, True)[1],
        lambda: weight_gradient_triton.weight_gradient(x, gradient),
    )


def normalize_plainly(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    normalized = F.batch_norm(x + residual, None, None, weight, bias, True, 0, EPS)
    return F.leaky_relu(normalized, SLOPE)


def normalize_by_kernels(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    active: Tensor = add_and_normalize(x, residual, weight, bias, EPS, SLOPE)[1]
    return active


def compare_normalizations(images: int, channels: int, side: int) -> Iterator[Comparison]:
    """Yield addition, batch norm and leaky ReLU, without and with the gradient of the addend."""
    x, residual, gradient = (random_images(images, channels, side) for _ in range(3))
    weight, bias = torch.ones(channels, device=x.device), torch.zeros(channels, device=x.device)
    leaf = residual.requires_grad_()
    compiled = torch.compile(normalize_plainly, fullgraph=True, dynamic=False)
    library = compiled if x.is_cuda else normalize_plainly

    def forward(activation: Activation) -> Tensor:
        return activation(x, leaf, weight, bias).detach()

    def forward_and_gradient(activation: Activation) -> Tensor:
        return torch.autograd.grad(activation(x, leaf, weight, bias), leaf, gradient)[0]

    name = f"normalization, {channels} of {side}x{side}"
    for part, work in (("forward", forward), ("forward and gradient", forward_and_gradient)):
        yield Comparison(
            f"{name}: {part}", partial(work, library), partial(work, normalize_by_kernels)
        )


def random_images(images: int, channels: int, side: int) -> Tensor:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return channels_last(torch.randn(images, channels, side, side, device=device, dtype=dtype))


def measure(calls: list[Callable[[], Tensor]]) -> float:
    """Return the milliseconds of one call: the median over replays of a CUDA graph of many."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls * 2:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(ROUNDS):
            calls[number % len(calls)]()
    times = []
    for _ in range(10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / ROUNDS)
    return statistics.median(times)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=960)
    parser.add_argument("--side", type=int, default=32)
    options = parser.parse_args(arguments)
    if not (torch.cuda.is_available() and is_hopper(torch.device("cuda"))):
        parser.error("the kernels run only on NVIDIA's Hopper generation; no such GPU found")
    torch.backends.cudnn.benchmark = True
    images, side = options.images, options.side
    print(f"{torch.cuda.get_device_name()}, {images} images of {side}x{side}")
    print(f"{'what':<50} {'library ms':>10} {'ours ms':>10} {'ratio':>6}")
    cases = [
        [list(compare_convolutions(images, *channels, side)) for _ in range(COPIES)]
        for channels in sorted(NARROW, reverse=True)
    ]
    cases += [
        [list(compare_normalizations(images, channels, side // part)) for _ in range(COPIES)]
        for channels, part in NORMALIZED
    ]
    for copies in cases:
        for comparisons in zip(*copies, strict=True):
            library = measure([comparison.library for comparison in comparisons])
            ours = measure([comparison.ours for comparison in comparisons])
            print(
                f"{comparisons[0].name:<50} {library:>10.4f} {ours:>10.4f} {ours / library:>6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
