"""Triton kernels for convolutions of few channels, where a library's leave the GPU half idle.

Images are channels_last: neighbouring pixels of a row lie side by side in memory. That is what
makes few channels bearable: two pixels of 32 channels are read, and multiplied, as one of 64.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.convolution import WIDEST

PAIRS = WIDEST // 2  # of pixels, that one matrix product sums over: at least a row of an image


@triton.jit  # type: ignore[untyped-decorator]
def gradient_row(gradient, offsets, mask, row, HEIGHT: tl.constexpr, ROW: tl.constexpr):  # type: ignore[no-untyped-def]
    """One row of the output's gradient, of several images, transposed; zeros outside."""
    rows = row + tl.zeros((1, 1), tl.int32)
    inside = (rows >= 0) & (rows < HEIGHT) & mask
    return tl.trans(tl.load(gradient + row * ROW + offsets, mask=inside, other=0.0))


@triton.jit  # type: ignore[untyped-decorator]
def write_taps(  # type: ignore[no-untyped-def]
    products, out, dy: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr
):
    """Sums the products of 2 gradient pixels with the 4 input pixels around them by their taps."""
    pixels = tl.reshape(products, (2, OUTPUTS, 4, INPUTS))
    ours = tl.arange(0, 2)[:, None, None, None]
    theirs = tl.arange(0, 4)[None, None, :, None]
    at = tl.arange(0, OUTPUTS)[:, None] * (9 * INPUTS) + tl.arange(0, INPUTS)[None, :]
    for dx in tl.static_range(3):
        tap = tl.where(theirs - ours == dx, pixels, 0.0)
        tl.store(out + at + (3 * dy + dx) * INPUTS, tl.sum(tl.sum(tap, axis=2), axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def sum_weight_gradient(  # type: ignore[no-untyped-def]
    images, gradient, partial, count, tiles, programs,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr,
    DEPTH: tl.constexpr, ROW: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """One program's share of the weight gradient: it walks down rows of a few images at a time.

    Two pixels of the gradient and the four of the images around them are one matrix product with
    every pair of them; each row of the images meets the gradient's rows above, at and below it.
    """
    program = tl.program_id(0)
    pair = tl.arange(0, DEPTH)
    image, column = pair // ROW, pair % ROW * 2
    g, i = tl.arange(0, 2 * OUTPUTS)[None, :], tl.arange(0, 4 * INPUTS)[None, :]
    of_gradient = (image * (HEIGHT * WIDTH * OUTPUTS) + column * OUTPUTS)[:, None] + g
    of_images = (image * (HEIGHT * WIDTH * INPUTS) + (column - 1) * INPUTS)[:, None] + i
    pixel = column[:, None] - 1 + i // INPUTS
    columns = (pixel >= 0) & (pixel < WIDTH)
    above = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    level = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    below = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    for tile in range(program * tiles // programs, (program + 1) * tiles // programs):
        first = tile // HEIGHT * (DEPTH // ROW)
        row = tile % HEIGHT
        known = (first + image < count)[:, None]
        if FULL:
            there, ours = columns, tl.full((1, 1), True, tl.int1)
        else:
            there, ours = columns & known, known & (column[:, None] + g // OUTPUTS < WIDTH)
        start = first.to(tl.int64) * (HEIGHT * WIDTH)
        x = tl.load(images + (start + row * WIDTH) * INPUTS + of_images, mask=there, other=0.0)
        y = gradient + start * OUTPUTS
        a = gradient_row(y, of_gradient, ours, row + 1, HEIGHT, WIDTH * OUTPUTS)
        l = gradient_row(y, of_gradient, ours, row, HEIGHT, WIDTH * OUTPUTS)  # noqa: E741
        b = gradient_row(y, of_gradient, ours, row - 1, HEIGHT, WIDTH * OUTPUTS)
        above = tl.dot(a, x, above)  # the images' row is above the gradient's
        level = tl.dot(l, x, level)
        below = tl.dot(b, x, below)
    out = partial + program * (9 * OUTPUTS * INPUTS)
    write_taps(above, out, 0, OUTPUTS, INPUTS)
    write_taps(level, out, 1, OUTPUTS, INPUTS)
    write_taps(below, out, 2, OUTPUTS, INPUTS)


def weight_gradient(images: Tensor, gradient: Tensor) -> Tensor:
    """Of a 3x3 convolution, in float32, both operands dense in channels_last.

    Every program sums its share, and the shares are added in a fixed order: no bit depends on
    who finishes first.
    """
    count, inputs, height, width = images.shape
    outputs = gradient.shape[1]
    row = triton.next_power_of_2(triton.cdiv(width, 2))
    tiles = triton.cdiv(count, PAIRS // row) * height
    # What one processor can hold: one program with four stages, or two with three.
    each, stages = (1, 4) if inputs > 16 else (2, 3)
    programs = min(tiles, each * processors(images.device))
    partial = images.new_empty((programs, outputs, 3, 3, inputs), dtype=torch.float32)
    sum_weight_gradient[(programs,)](
        images, gradient, partial, count, tiles, programs,
        HEIGHT=height, WIDTH=width, OUTPUTS=outputs, INPUTS=inputs,
        DEPTH=PAIRS, ROW=row, FULL=2 * row == width and count % (PAIRS // row) == 0,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
    return partial.sum(dim=0).permute(0, 3, 1, 2)


def processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 4
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
