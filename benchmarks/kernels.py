"""Milliseconds of our own kernels on a GPU, beside those of PyTorch's libraries and compiler.

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

from fullmatch.models.kernels import (
    convolution_triton as convolution_kernels,
)
from fullmatch.models.kernels import (
    weight_gradient_triton as weight_gradient_kernels,
)
from fullmatch.models.kernels.convolution import NARROW
from fullmatch.models.kernels.device import channels_last, measured_on
from fullmatch.models.kernels.normalization import SLOPE
from fullmatch.models.kernels.normalization_operators import add_and_normalize

ROUNDS = 20  # calls in a recording, so that its launch does not count
COPIES = 3  # of the operands, more than a cache holds
NORMALIZED = ((32, 1), (64, 2), (128, 4))  # channels, and what part of the side is left there
EPS = 1e-3
Activation = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Work(NamedTuple):
    """The same result twice."""

    name: str
    library: Callable[[], Tensor]
    ours: Callable[[], Tensor]


def convolutions(images: int, outputs: int, inputs: int, side: int) -> Iterator[Work]:
    """What a training step does with a convolution."""
    x, gradient = given(images, inputs, side), given(images, outputs, side)
    weight = torch.randn(outputs, inputs, 3, 3, device=x.device)
    rounded = channels_last(weight.to(x.dtype))

    def library(*wanted: bool) -> tuple[Tensor, ...]:
        one, none = [1, 1], [0, 0]
        found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            gradient, x, rounded, None, one, one, one, False, none, 1, [*wanted, False]
        )
        return found

    name = f"convolution, {inputs} to {outputs}"
    yield Work(
        f"{name}: forward",
        lambda: F.conv2d(x, rounded, padding=1),
        lambda: convolution_kernels.convolution(x, weight),
    )
    yield Work(
        f"{name}: gradient of inputs",
        lambda: library(True, False)[0],
        lambda: convolution_kernels.convolution(gradient, weight, flipped=True),
    )
    yield Work(
        f"{name}: gradient of weights",
        lambda: library(False, True)[1],
        lambda: weight_gradient_kernels.weight_gradient(x, gradient),
    )


def plain(x: Tensor, path: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    normal = F.batch_norm(x + path, None, None, weight, bias, True, 0, EPS)
    return F.leaky_relu(normal, SLOPE)


def own(x: Tensor, path: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    active: Tensor = add_and_normalize(x, path, weight, bias, EPS, SLOPE)[1]
    return active


def normalizations(images: int, channels: int, side: int) -> Iterator[Work]:
    """An addition, batch norm and leaky ReLU, and the gradient of what was added."""
    x, path, gradient = (given(images, channels, side) for _ in range(3))
    weight, bias = torch.ones(channels, device=x.device), torch.zeros(channels, device=x.device)
    leaf = path.requires_grad_()
    library = torch.compile(plain, fullgraph=True, dynamic=False) if x.is_cuda else plain

    def forward(active: Activation) -> Tensor:
        return active(x, leaf, weight, bias).detach()

    def both(active: Activation) -> Tensor:
        return torch.autograd.grad(active(x, leaf, weight, bias), leaf, gradient)[0]

    name = f"normalization, {channels} of {side}x{side}"
    for what, work in (("forward", forward), ("forward and gradient", both)):
        yield Work(f"{name}: {what}", partial(work, library), partial(work, own))


def given(images: int, channels: int, side: int) -> Tensor:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    return channels_last(torch.randn(images, channels, side, side, device=device, dtype=kind))


def milliseconds(calls: list[Callable[[], Tensor]]) -> float:
    """Of one of these calls, the median of some replays of a recording of all."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
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


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=960)
    parser.add_argument("--side", type=int, default=32)
    options = parser.parse_args(words)
    if not (torch.cuda.is_available() and measured_on(torch.device("cuda"))):
        parser.error("the kernels run on NVIDIA's Hopper generation alone; there is none here")
    torch.backends.cudnn.benchmark = True
    images, side = options.images, options.side
    print(f"{torch.cuda.get_device_name()}, {images} images of {side}x{side}")
    print(f"{'what':<50} {'library ms':>10} {'ours ms':>10} {'share':>6}")
    kinds = [
        [list(convolutions(images, *channels, side)) for _ in range(COPIES)]
        for channels in sorted(NARROW, reverse=True)
    ]
    kinds += [
        [list(normalizations(images, channels, side // part)) for _ in range(COPIES)]
        for channels, part in NORMALIZED
    ]
    for copies in kinds:
        for same in zip(*copies, strict=True):
            library = milliseconds([work.library for work in same])
            ours = milliseconds([work.ours for work in same])
            print(
                f"{same[0].name:<50} {library:>10.4f} {ours:>10.4f} {ours / library:>6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
