"""Triton kernels for 3x3 convolutions with few channels, for which cuDNN leaves the GPU half idle.

Images are channels_last, so neighboring pixels of a row are neighbors in memory. That makes few
channels efficient: a pair of output pixels and the four input pixels around it form one matrix
product, which for 32 channels is 64 by 128. A program takes some pairs and goes through their rows
from top to bottom, so every row is read once and meets the three rows of taps that need it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.device import count_processors

PAIRS = 64  # pairs of pixels per program, possibly of several images
# By (outputs, inputs): programs per processor of the device, and pipeline stages.
PLANS = {(32, 32): (2, 3), (32, 16): (3, 4), (16, 32): (2, 4), (16, 4): (6, 4)}


@triton.jit
def program_steps(steps, programs):  # type: ignore[no-untyped-def]
    """Return the begin and end of this program's share of the steps."""
    program = tl.program_id(0).to(tl.int64)
    begin, end = program * steps // programs, (program + 1) * steps // programs
    return begin.to(tl.int32), end.to(tl.int32)


@triton.jit  # type: ignore[untyped-decorator]
def locate_pairs(group, WIDTH: tl.constexpr, PAIRS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return a group's first image, and the image (counted from it) and column of each pair."""
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
    """Load PIXELS neighboring pixels per pair; zeros outside the images."""
    along = tl.arange(0, PIXELS * CHANNELS)[None, :]
    pixel = column[:, None] + along // CHANNELS
    rows = row + tl.zeros((1, 1), tl.int32)  # a tensor, because the interpreter needs tensor masks
    inside = (rows >= 0) & (rows < HEIGHT)
    if PIXELS > 2 or not FULL:
        inside = inside & (pixel >= 0) & (pixel < WIDTH)
    if not FULL:
        inside = inside & (first + image < count)[:, None]
    offset = (image * (HEIGHT * WIDTH * CHANNELS) + column * CHANNELS)[:, None] + along
    start = first.to(tl.int64) * (HEIGHT * WIDTH) + row * WIDTH
    return tl.load(images + start * CHANNELS + offset, mask=inside, other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def expand_weight(  # type: ignore[no-untyped-def]
    weight, out, output_stride, input_stride, row_stride, column_stride,
    OUTPUTS: tl.constexpr, INPUTS: tl.constexpr, FLIPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write a matrix per row of taps, from 4 input pixels to 2 output pixels; 0 without a tap."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size: tl.constexpr = 4 * INPUTS * 2 * OUTPUTS
    y = index // size
    source, target = index % size // (2 * OUTPUTS), index % (2 * OUTPUTS)
    x = source // INPUTS - target // OUTPUTS
    is_tap = (x >= 0) & (x < 3)
    if FLIPPED:
        x, y = 2 - x, 2 - y
    channels = target % OUTPUTS * output_stride + source % INPUTS * input_stride
    tap = channels + y * row_stride + x * column_stride
    value = tl.load(weight + tap, mask=is_tap, other=0.0)
    tl.store(out + index, value.to(out.dtype.element_ty))


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
    """Convolve one program's share of the rows, with a row of zeros between the images.

    An input row is the last of three for the output row above it, which is then stored, the second
    for the output row at its level, and the first for the one below. ADDS: add the other images to
    the result. SUMS: write the sums of the result and of its squares, per program and channel.
    """
    begin, end = program_steps(steps, programs)
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
        offset, mask = locate_output_row(
            earliest, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL
        )
        addend = tl.load(other + offset, mask=mask, other=0.0)
    for step in range(earliest, end):
        if ADDS:  # read one row ahead to hide the latency of memory
            offset, mask = locate_output_row(
                step + 1, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL
            )
            next_addend = tl.load(other + offset, mask=mask, other=0.0)
        row = step % (HEIGHT + 1)
        first, image, column = locate_pairs(step // (HEIGHT + 1), WIDTH, PAIRS)
        x = load_row(images, first, image, column - 1, row, count, HEIGHT, WIDTH, INPUTS, 4, FULL)
        level = tl.dot(x, middle, level)
        below = tl.dot(x, top, tl.zeros((PAIRS, 2 * OUTPUTS), tl.float32))
        above = tl.dot(x, bottom, above)  # last, because its result is needed next
        if ADDS:
            above += addend.to(tl.float32)
            addend = next_addend
        offset, mask = locate_output_row(
            step, begin, end, count, HEIGHT, WIDTH, OUTPUTS, PAIRS, FULL
        )
        rounded = above.to(out.dtype.element_ty)
        tl.store(out + offset, rounded, mask=mask)
        if SUMS:
            value = tl.where(mask, rounded.to(tl.float32), 0.0)
            # Rows 8 apart are in one thread, which adds them and holds half as many sums.
            value = tl.reshape(value, (PAIRS // 16, 2, 8, 2 * OUTPUTS))
            first_sum += tl.sum(value, axis=1)
            second_sum += tl.sum(value * value, axis=1)
        above, level = level, below
    if SUMS:
        share = sums + tl.program_id(0) * (2 * OUTPUTS) + tl.arange(0, OUTPUTS)
        tl.store(share, sum_pixels(first_sum, OUTPUTS))
        tl.store(share + OUTPUTS, sum_pixels(second_sum, OUTPUTS))


@triton.jit  # type: ignore[untyped-decorator]
def locate_output_row(  # type: ignore[no-untyped-def]
    step, begin, end, count,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, PAIRS: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    """Return the offsets of the output row above a step's input row, and this program's mask."""
    row = step % (HEIGHT + 1)
    first, image, column = locate_pairs(step // (HEIGHT + 1), WIDTH, PAIRS)
    along = tl.arange(0, 2 * OUTPUTS)[None, :]
    scalar = tl.zeros((1, 1), tl.int32)  # a tensor, because the interpreter needs tensor masks
    mask = (row + scalar >= 1) & (step + scalar >= begin) & (step + scalar < end)
    if not FULL:
        exists = (first + image < count)[:, None]
        mask = mask & exists & (column[:, None] + along // OUTPUTS < WIDTH)
    offset = (image * (HEIGHT * WIDTH * OUTPUTS) + column * OUTPUTS)[:, None] + along
    start = first.to(tl.int64) * (HEIGHT * WIDTH) + (row - 1) * WIDTH
    return start * OUTPUTS + offset, mask


@triton.jit  # type: ignore[untyped-decorator]
def sum_pixels(parts, OUTPUTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum over all pixels, per channel."""
    return tl.sum(tl.reshape(tl.sum(tl.sum(parts, axis=1), axis=0), (2, OUTPUTS)), axis=0)


def convolution(x: Tensor, weight: Tensor, *, flipped: bool = False) -> Tensor:
    """Convolve dense channels_last images; the weight is rounded to their dtype.

    With `flipped`, x is the gradient of a convolution's output, and the result that of its input.
    """
    out, _ = launch(x, weight, None, flipped=flipped, sums=False)
    return out


def summed_convolution(x: Tensor, weight: Tensor, other: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the convolution plus the other images, and its sums per channel.

    Sums are (programs, 2, channels): every program's share of the sums of values and of squares.
    """
    return launch(x, weight, other, flipped=False, sums=True)


def launch(
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
    groups, full = group_pairs(count, width)
    steps = groups * (height + 1)
    per_processor, stages = PLANS[outputs, inputs]
    if sums:
        per_processor = 2  # sums take more registers
    # At least four rows per program, because it reads two more than it writes.
    programs = max(1, min(steps // 4, per_processor * count_processors(x.device)))
    shares = x.new_empty((programs if sums else 0, 2, outputs), dtype=torch.float32)
    convolve[(programs,)](
        x, matrices, x if other is None else other, out, shares, count, steps, programs,
        height, width, outputs, inputs, PAIRS, full, other is not None, sums,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
    return out.permute(0, 3, 1, 2), shares


def group_pairs(count: int, width: int) -> tuple[int, bool]:
    """Return the groups of pairs in one row of all images, and whether they are all full."""
    pairs = count * ((width + 1) // 2)
    return -(-pairs // PAIRS), pairs % PAIRS == 0 and width % 2 == 0
