"""Triton kernels for the weight gradients of the same convolutions, over the same rows of pairs.

Every row of the images meets the three rows of the gradient around it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.convolution_triton import (
    PAIRS,
    group_pairs,
    load_row,
    locate_pairs,
    program_steps,
)
from fullmatch.models.kernels.device import count_processors

# By (outputs, inputs): programs per processor of the device, and pipeline stages.
PLANS = {(32, 32): (1, 4), (32, 16): (2, 3), (16, 4): (4, 3)}


@triton.jit  # type: ignore[untyped-decorator]
def write_taps(  # type: ignore[no-untyped-def]
    products, out, y: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr
):
    """Sum the products of 2 gradient pixels and the 4 input pixels around them, per tap."""
    pixels = tl.reshape(products, (2, OUTPUTS, 4, INPUTS))
    target = tl.arange(0, 2)[:, None, None, None]
    source = tl.arange(0, 4)[None, None, :, None]
    offset = tl.arange(0, OUTPUTS)[:, None] * (9 * INPUTS) + tl.arange(0, INPUTS)[None, :]
    for x in tl.static_range(3):
        tap = tl.where(source - target == x, pixels, 0.0)
        tl.store(out + offset + (3 * y + x) * INPUTS, tl.sum(tl.sum(tap, axis=2), axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def sum_weight_gradient(  # type: ignore[no-untyped-def]
    images, gradient, out, count, steps, programs,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr,
    PAIRS: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """Sum one program's share: rows of images times the rows of the gradient around them."""
    begin, end = program_steps(steps, programs)
    top = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    middle = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    bottom = tl.zeros((2 * OUTPUTS, 4 * INPUTS), tl.float32)
    for step in range(begin, end):
        row = step % HEIGHT
        first, image, column = locate_pairs(step // HEIGHT, WIDTH, PAIRS)
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
    share = out + tl.program_id(0) * (9 * OUTPUTS * INPUTS)
    write_taps(top, share, 0, OUTPUTS, INPUTS)
    write_taps(middle, share, 1, OUTPUTS, INPUTS)
    write_taps(bottom, share, 2, OUTPUTS, INPUTS)


@triton.jit  # type: ignore[untyped-decorator]
def add_shares(  # type: ignore[no-untyped-def]
    shares, out, count, SIZE: tl.constexpr, SHARES: tl.constexpr, BLOCK: tl.constexpr
):
    index, share = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, SHARES)[:, None]
    values = tl.load(shares + share * SIZE + index[None, :], mask=share < count, other=0.0)
    tl.store(out + index, tl.sum(values, axis=0))


def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """Return the float32 gradient, from a convolution's input and the gradient of its output.

    Both are channels_last. Every program sums its share, and the shares are added in a fixed order,
    so that the result does not depend on which program finishes first.
    """
    count, inputs, height, width = x.shape
    outputs = gradient.shape[1]
    groups, full = group_pairs(count, width)
    steps = groups * height
    per_processor, stages = PLANS[outputs, inputs]
    programs = min(steps, per_processor * count_processors(x.device))
    shares = x.new_empty((programs, outputs, 3, 3, inputs), dtype=torch.float32)
    sum_weight_gradient[(programs,)](
        x, gradient, shares, count, steps, programs, height, width, outputs, inputs, PAIRS, full,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
    total, block = torch.empty_like(shares[0]), 32
    rows = triton.next_power_of_2(programs)
    add_shares[(total.numel() // block,)](
        shares, total, programs, total.numel(), rows, block, num_warps=8
    )
    return total.permute(0, 3, 1, 2)
