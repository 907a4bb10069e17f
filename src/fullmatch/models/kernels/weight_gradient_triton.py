"""Triton kernels for the weight gradients of those convolutions, which walk the same rows of pairs.

Every row of the images meets the three rows of the gradient around it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.convolution_triton import PAIRS, grouped, load_row, place, share
from fullmatch.models.kernels.device import count_processors

# By outputs and inputs: programs for every processor of the device, and rows on their way to it.
PLANS = {(32, 32): (1, 4), (32, 16): (2, 3), (16, 4): (4, 3)}


@triton.jit  # type: ignore[untyped-decorator]
def write_taps(  # type: ignore[no-untyped-def]
    products, out, y: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr
):
    """Sums the products of 2 gradient pixels with the 4 input pixels around them by their taps."""
    pixels = tl.reshape(products, (2, OUTPUTS, 4, INPUTS))
    target = tl.arange(0, 2)[:, None, None, None]
    source = tl.arange(0, 4)[None, None, :, None]
    at = tl.arange(0, OUTPUTS)[:, None] * (9 * INPUTS) + tl.arange(0, INPUTS)[None, :]
    for x in tl.static_range(3):
        tap = tl.where(source - target == x, pixels, 0.0)
        tl.store(out + at + (3 * y + x) * INPUTS, tl.sum(tl.sum(tap, axis=2), axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def sum_weight_gradient(  # type: ignore[no-untyped-def]
    images, gradient, out, count, steps, programs,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr,
    PAIRS: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """One program's share of the weight gradient: rows of images by the gradient's around them."""
    begin, end = share(steps, programs)
    top = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    middle = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    bottom = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    for step in range(begin, end):
        row = step % HEIGHT
        first, image, column = place(step // HEIGHT, WIDTH, PAIRS)
        x = load_row(images, first, image, column - 1, row, count, HEIGHT, WIDTH, INPUTS, 4, FULL)
        below = load_row(
            gradient, first, image, column, row + 1, count, HEIGHT, WIDTH, OUTPUTS, 2, FULL
        )
        level = load_row(
            gradient, first, image, column, row, count, HEIGHT, WIDTH, OUTPUTS, 2, FULL
        )
        above = load_row(
            gradient, first, image, column, row - 1, count, HEIGHT, WIDTH, OUTPUTS, 2, FULL
        )
        top = tl.dot(tl.trans(below), x, top)
        middle = tl.dot(tl.trans(level), x, middle)
        bottom = tl.dot(tl.trans(above), x, bottom)
    mine = out + tl.program_id(0) * (9 * OUTPUTS * INPUTS)
    write_taps(top, mine, 0, OUTPUTS, INPUTS)
    write_taps(middle, mine, 1, OUTPUTS, INPUTS)
    write_taps(bottom, mine, 2, OUTPUTS, INPUTS)


@triton.jit  # type: ignore[untyped-decorator]
def add_shares(  # type: ignore[no-untyped-def]
    shares, out, count, SIZE: tl.constexpr, LINES: tl.constexpr, BLOCK: tl.constexpr
):
    at, line = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, LINES)[:, None]
    values = tl.load(shares + line * SIZE + at[None, :], mask=line < count, other=0.0)
    tl.store(out + at, tl.sum(values, axis=0))


def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """In float32, from a convolution's input and the gradient of its output, both channels_last.

    Every program sums its share, and the shares are added in a fixed order: no bit depends on
    who finishes first.
    """
    count, inputs, height, width = x.shape
    outputs = gradient.shape[1]
    groups, full = grouped(count, width)
    steps = groups * height
    each, stages = PLANS[outputs, inputs]
    programs = min(steps, each * count_processors(x.device))
    shares = x.new_empty((programs, outputs, 3, 3, inputs), dtype=torch.float32)
    sum_weight_gradient[(programs,)](
        x, gradient, shares, count, steps, programs, height, width, outputs, inputs, PAIRS, full,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
    total, block = torch.empty_like(shares[0]), 32
    lines = triton.next_power_of_2(programs)
    add_shares[(total.numel() // block,)](
        shares, total, programs, total.numel(), lines, block, num_warps=8
    )
    return total.permute(0, 3, 1, 2)
