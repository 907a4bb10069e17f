"""Milliseconds of narrow 3x3 convolutions and their gradients on a GPU: the library's, and our own.

`python benchmarks/convolutions.py` needs a GPU on which the kernels run: Hopper, such as an H100.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from fullmatch.models import kernels
from fullmatch.models.convolution import NARROW, channels_last, measured_on

Call = Callable[[], Tensor]
ROUNDS = 20  # calls in a recording, so that its launch does not count
COPIES = 3  # of the operands, more than a cache holds


def works(x: Tensor, gradient: Tensor, weight: Tensor) -> Iterator[tuple[str, Call, Call]]:
    """What a training step does with a convolution: by the library, and by us."""

    def library(*wanted: bool) -> tuple[Tensor, ...]:
        one, none = [1, 1], [0, 0]
        found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            gradient, x, rounded, None, one, one, one, False, none, 1, [*wanted, False]
        )
        return found

    rounded = channels_last(weight.to(x.dtype))
    yield (
        "forward",
        lambda: F.conv2d(x, rounded, padding=1),
        lambda: kernels.convolution(x, weight),
    )
    yield (
        "gradient of inputs",
        lambda: library(True, False)[0],
        lambda: kernels.convolution(gradient, weight, flipped=True),
    )
    yield (
        "gradient of weights",
        lambda: library(False, True)[1],
        lambda: kernels.weight_gradient(x, gradient),
    )


def operands(images: int, outputs: int, inputs: int, side: int) -> tuple[Tensor, Tensor, Tensor]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    x, gradient = (
        channels_last(torch.randn(images, channels, side, side, device=device, dtype=kind))
        for channels in (inputs, outputs)
    )
    return x, gradient, torch.randn(outputs, inputs, 3, 3, device=device)


def milliseconds(calls: list[Call]) -> float:
    """Of one of these calls, the median of some replays of a recording of all."""
    for call in calls:
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
    side = options.side
    print(f"{torch.cuda.get_device_name()}, {options.images} images of {side}x{side}")
    print(f"{'channels':<10} {'what':<20} {'library ms':>10} {'ours ms':>10} {'share':>6}")
    for outputs, inputs in sorted(NARROW, reverse=True):
        each = [
            list(works(*operands(options.images, outputs, inputs, side))) for _ in range(COPIES)
        ]
        for same in zip(*each, strict=True):
            library = milliseconds([call for _, call, _ in same])
            ours = milliseconds([call for _, _, call in same])
            name = f"{inputs} to {outputs}"
            print(
                f"{name:<10} {same[0][0]:<20} {library:>10.4f} {ours:>10.4f} {ours / library:>6.2f}"
            )


if __name__ == "__main__":
    main()
