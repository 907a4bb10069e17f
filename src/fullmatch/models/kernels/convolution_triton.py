"""Triton kernels for 3x3 convolutions of few channels, where a library's leave the GPU half idle.

Images are channels_last, so neighbouring pixels of a row lie side by side in memory. That makes few
channels bearable: a pair of pixels of the output and the four of the input around it are one matrix
product, in which 32 channels are 64 by 128. The rows of some pairs are walked from top to bottom,
so that every row is read once and meets the three rows of taps that need it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.device import count_processors

PAIRS = 64  # of pixels, whose rows a program walks at a time; they may be of several images
# By outputs and inputs: programs for every processor of the device, and rows on their way to it.
PLANS = {(32, 32): (2, 3), (32, 16): (3, 4), (16, 32): (2, 4), (16, 4): (6, 4)}


@triton.jit
def share(steps, programs):  # type: ignore[no-untyped-def]
    """The steps of this program: where they begin and end."""
    program = tl.program_id(0).to(tl.int64)
    begin, end = program * steps // programs, (program + 1) * steps // programs
    return begin.to(tl.int32), end.to(tl.int32)


@triton.jit  # type: ignore[untyped-decorator]
def place(group, WIDTH: tl.constexpr, PAIRS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Of a group of pairs: its first image, how far after it each pair's is, and their columns."""
    ROW: tl.constexpr = (WIDTH + 1) // 2
    pair = tl.arange(0, PAIRS)
    if PAIRS % ROW == 0:
        first = group * (PAIRS // ROW)
    else:
        first = group * PAIRS // ROW
        pair += group * PAIRS % ROW
    return first, pair // ROW, pair % ROW * 2


@triton.jit  # type: ignore[untyped-decorator]
def load_row(  # type: ignore[no-untyped-def]
    images, first, image, column, row, count,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    """So many neighbouring pixels a line; zeros beside and between the images."""
    along = tl.arange(0, PIXELS * CHANNELS)[None, :]
    pixel = column[:, None] + along // CHANNELS
    rows = row + tl.zeros((1, 1), tl.int32)  # a tensor: the interpreter's masks are of no scalars
    inside = (rows >= 0) & (rows < HEIGHT)
    if PIXELS > 2 or not FULL:
        inside = inside & (pixel >= 0) & (pixel < WIDTH)
    if not FULL:
        inside = inside & (first + image < count)[:, None]
    at = (image * (HEIGHT * WIDTH * CHANNELS) + column * CHANNELS)[:, None] + along
    start = first.to(tl.int64) * (HEIGHT * WIDTH) + row * WIDTH
    return tl.load(images + start * CHANNELS + at, mask=inside, other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def expand_weight(  # type: ignore[no-untyped-def]
    weight, out, by_output, by_input, by_row, by_column,
    OUTPUTS: tl.constexpr, INPUTS: tl.constexpr, FLIPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A matrix for every row of taps, from 4 input pixels to 2 of the output; 0 where none is."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size: tl.constexpr = 4 * INPUTS * 2 * OUTPUTS
    y = at // size
    source, target = at % size // (2 * OUTPUTS), at % (2 * OUTPUTS)
    x = source // INPUTS - target // OUTPUTS
    leads = (x >= 0) & (x < 3)
    if FLIPPED:
        x, y = 2 - x, 2 - y
    tap = target % OUTPUTS * by_output + source % INPUTS * by_input + y * by_row + x * by_column
    value = tl.load(weight + tap, mask=leads, other=0.0)
    tl.store(out + at, value.to(out.dtype.element_ty))


@triton.jit  # type: ignore[untyped-decorator]
def load_matrix(matrices, index, DEPTH: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    d, c = tl.arange(0, DEPTH)[:, None], tl.arange(0, COLUMNS)[None, :]
    return tl.load(matrices + index * (DEPTH * COLUMNS) + d * COLUMNS + c)


@triton.jit  # type: ignore[untyped-decorator]
def convolve(  # type: ignore[no-untyped-def]
    images, matrices, other, out, sums, count, steps, programs,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, INPUTS: tl.constexpr,
    PAIRS: tl.constexpr, FULL: tl.constexpr, ADDS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """One program's share of the rows, with a row of zeros between the images.

    An input row is the last of three for the output row above it, which is stored, the second for
    the one beside it, and the first for the one below. If asked to, it ADDS other images to what it
    stores, and SUMS that and its squares by channel, a share for each program.
    """
    begin, end = share(steps, programs)
    top = load_matrix(matrices, 0, 4 * INPUTS, 2 * OUTPUTS)
    middle = load_matrix(matrices, 1, 4 * INPUTS, 2 * OUTPUTS)
    bottom = load_matrix(matrices, 2, 4 * INPUTS, 2 * OUTPUTS)
    above = tl.zeros((PAIRS, 2 * OUTPUTS), tl.float32)
    level = tl.zeros((PAIRS, 2 * OUTPUTS), tl.float32)
    first_sum = tl.zeros((PAIRS // 16, 8, 2 * OUTPUTS), tl.float32)
    second_sum = tl.zeros((PAIRS // 16, 8, 2 * OUTPUTS), tl.float32)
    # The first output row needs the two input rows before its last.
    earliest = tl.maximum(begin - 2, begin // (HEIGHT + 1) * (HEIGHT + 1))
    if ADDS:
        at, ours = place_above(earliest, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL)
        ready = tl.load(other + at, mask=ours, other=0.0)
    for step in range(earliest, end):
        if ADDS:  # read a row ahead, because memory answers late
            at, ours = place_above(step + 1, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL)
            following = tl.load(other + at, mask=ours, other=0.0)
        row = step % (HEIGHT + 1)
        first, image, column = place(step // (HEIGHT + 1), WIDTH, PAIRS)
        x = load_row(images, first, image, column - 1, row, count, HEIGHT, WIDTH, INPUTS, 4, FULL)
        level = tl.dot(x, middle, level)
        below = tl.dot(x, top, tl.zeros((PAIRS, 2 * OUTPUTS), tl.float32))
        above = tl.dot(x, bottom, above)  # the last, since it is waited for
        if ADDS:
            above += ready.to(tl.float32)
            ready = following
        at, ours = place_above(step, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL)
        kept = above.to(out.dtype.element_ty)
        tl.store(out + at, kept, mask=ours)
        if SUMS:
            value = tl.where(ours, kept.to(tl.float32), 0.0)
            # Rows 8 apart are in one thread, which adds them and keeps half as many sums.
            value = tl.reshape(value, (PAIRS // 16, 2, 8, 2 * OUTPUTS))
            first_sum += tl.sum(value, axis=1)
            second_sum += tl.sum(value * value, axis=1)
        above, level = level, below
    if SUMS:
        mine = sums + tl.program_id(0) * (2 * OUTPUTS) + tl.arange(0, OUTPUTS)
        tl.store(mine, pixels_together(first_sum, OUTPUTS))
        tl.store(mine + OUTPUTS, pixels_together(second_sum, OUTPUTS))


@triton.jit  # type: ignore[untyped-decorator]
def place_above(  # type: ignore[no-untyped-def]
    step, begin, end, count,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, PAIRS: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    """Where the output row above a step's input row is, and which of it this program computes."""
    row = step % (HEIGHT + 1)
    first, image, column = place(step // (HEIGHT + 1), WIDTH, PAIRS)
    along = tl.arange(0, 2 * OUTPUTS)[None, :]
    scalar = tl.zeros((1, 1), tl.int32)  # a tensor: the interpreter's masks are of no scalars
    ours = (row + scalar >= 1) & (step + scalar >= begin) & (step + scalar < end)
    if not FULL:
        known = (first + image < count)[:, None]
        ours = ours & known & (column[:, None] + along // OUTPUTS < WIDTH)
    at = (image * (HEIGHT * WIDTH * OUTPUTS) + column * OUTPUTS)[:, None] + along
    start = first.to(tl.int64) * (HEIGHT * WIDTH) + (row - 1) * WIDTH
    return start * OUTPUTS + at, ours


@triton.jit  # type: ignore[untyped-decorator]
def pixels_together(parts, OUTPUTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The sum of all pixels, by channel."""
    return tl.sum(tl.reshape(tl.sum(tl.sum(parts, axis=1), axis=0), (2, OUTPUTS)), axis=0)


def convolution(x: Tensor, weight: Tensor, *, flipped: bool = False) -> Tensor:
    """Of dense channels_last images, with a weight that is rounded to their type on the way.

    Flipped, x is the gradient of such a convolution's output, and the result that of its input.
    """
    out, _ = launched(x, weight, None, flipped=flipped, sums=False)
    return out


def summed_convolution(x: Tensor, weight: Tensor, other: Tensor | None) -> tuple[Tensor, Tensor]:
    """A convolution to which the other images are added; and shares of the sums of its channels.

    A share (2, channels) holds sums of numbers and of their squares, as `sum_moments` would.
    """
    return launched(x, weight, other, flipped=False, sums=True)


def launched(
    x: Tensor, weight: Tensor, other: Tensor | None, *, flipped: bool, sums: bool
) -> tuple[Tensor, Tensor]:
    (outputs, inputs), (o, i, row, column) = weight.shape[:2], weight.stride()
    if flipped:
        outputs, inputs, o, i = inputs, outputs, i, o
    matrices = x.new_empty(3 * 4 * inputs * 2 * outputs)
    block = 256
    expand_weight[(len(matrices) // block,)](
        weight, matrices, o, i, row, column, outputs, inputs, flipped, block
    )
    count, _, height, width = x.shape
    out = x.new_empty((count, height, width, outputs))
    groups, full = grouped(count, width)
    steps = groups * (height + 1)
    each, stages = PLANS[outputs, inputs]
    # At least four rows a program, of which it reads two for nothing; sums take registers of two.
    programs = max(1, min(steps // 4, (2 if sums else each) * count_processors(x.device)))
    shares = x.new_empty((programs if sums else 0, 2, outputs), dtype=torch.float32)
    convolve[(programs,)](
        x, matrices, x if other is None else other, out, shares, count, steps, programs,
        height, width, outputs, inputs, PAIRS, full, other is not None, sums,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
    return out.permute(0, 3, 1, 2), shares


def grouped(count: int, width: int) -> tuple[int, bool]:
    """Groups of pairs in one row of all images, and whether all are full of real pixels."""
    pairs = count * ((width + 1) // 2)
    return -(-pairs // PAIRS), pairs % PAIRS == 0 and width % 2 == 0
