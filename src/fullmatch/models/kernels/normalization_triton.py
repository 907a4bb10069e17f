"""Triton kernels for addition, batch norm and leaky ReLU, most of the memory traffic of a step.

Images are channels_last, so all of them together are rows of channels. What is the same for a whole
channel is computed once, in a kernel of its own; per element, little is left beyond reading and
writing. The second pass over a tensor runs in reverse order, because the cache still holds what the
first pass has read last.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.device import count_processors
from fullmatch.models.kernels.layout import STATISTICS

WARPS = 8
TILE = 4096  # elements per program, where elements are independent
CHUNK = 8  # channels per program, where shares of sums are added


class Plan(NamedTuple):
    """How a kernel sums, as measured to be fastest."""

    tile: int  # elements at a time; a program has a sum for each of them
    ahead: int  # tiles that are read together, to hide the latency of memory
    per_processor: int  # programs per processor of the device


MOMENTS, GRADIENTS = Plan(8192, 1, 2), Plan(4096, 2, 2)


@triton.jit  # type: ignore[untyped-decorator]
def locate_tile(block, rows, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the offsets of a tile's elements, and the mask of those that exist."""
    row = block * ROWS + tl.arange(0, ROWS)[:, None]
    return row * CHANNELS + tl.arange(0, CHANNELS)[None, :], row < rows


@triton.jit  # type: ignore[untyped-decorator]
def load_channels(table, row, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + row * CHANNELS + tl.arange(0, CHANNELS))[None, :]


@triton.jit  # type: ignore[untyped-decorator]
def store_sums(sums, first, second, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store this program's share of two sums over all rows."""
    share = sums + tl.program_id(0) * (2 * CHANNELS) + tl.arange(0, CHANNELS)
    tl.store(share, tl.sum(first, axis=0))
    tl.store(share + CHANNELS, tl.sum(second, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def add_shares(sums, programs, channel, CHANNELS: tl.constexpr, SHARES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the shares of all programs to both sums of some channels, always in the same order."""
    share = tl.arange(0, SHARES)[:, None]
    offset, mask = share * (2 * CHANNELS) + channel[None, :], share < programs
    first = tl.load(sums + offset, mask=mask, other=0.0)
    second = tl.load(sums + offset + CHANNELS, mask=mask, other=0.0)
    return tl.sum(first, axis=0), tl.sum(second, axis=0)


@triton.jit  # type: ignore[untyped-decorator]
def sum_moments(  # type: ignore[no-untyped-def]
    x, residual, total, sums, rows, blocks, programs,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, AHEAD: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """Sum the elements and their squares; ADDS: those of x + residual, which is stored."""
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(tl.program_id(0) * AHEAD, blocks, programs * AHEAD):
        for block in tl.static_range(AHEAD):
            offset, mask = locate_tile(start + block, rows, ROWS, CHANNELS)
            value = tl.load(x + offset, mask=mask, other=0.0).to(tl.float32)
            if ADDS:
                value += tl.load(residual + offset, mask=mask, other=0.0).to(tl.float32)
                rounded = value.to(total.dtype.element_ty)
                tl.store(total + offset, rounded, mask=mask)
                value = rounded.to(tl.float32)  # statistics of what the next kernel reads
            first += value
            second += value * value
    store_sums(sums, first, second, CHANNELS)


@triton.jit  # type: ignore[untyped-decorator]
def finish_moments(  # type: ignore[no-untyped-def]
    sums, weight, bias, statistics, rows, eps, programs,
    CHANNELS: tl.constexpr, SHARES: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write the `STATISTICS` of some channels."""
    channel = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    first, second = add_shares(sums, programs, channel, CHANNELS, SHARES)
    mean = first / rows
    variance = tl.maximum(second / rows - mean * mean, 0.0)
    scale = tl.load(weight + channel) / tl.sqrt(variance + eps)
    tl.store(statistics + channel, mean)
    tl.store(statistics + CHANNELS + channel, variance)
    tl.store(statistics + 2 * CHANNELS + channel, scale)
    tl.store(statistics + 3 * CHANNELS + channel, tl.load(bias + channel) - mean * scale)
    tl.store(statistics + 4 * CHANNELS + channel, variance * (rows / tl.maximum(rows - 1, 1)))


@triton.jit  # type: ignore[untyped-decorator]
def activate(  # type: ignore[no-untyped-def]
    x, statistics, out, rows, blocks, slope, ROWS: tl.constexpr, CHANNELS: tl.constexpr
):
    scale, shift = load_channels(statistics, 2, CHANNELS), load_channels(statistics, 3, CHANNELS)
    offset, mask = locate_tile(blocks - 1 - tl.program_id(0), rows, ROWS, CHANNELS)
    value = tl.load(x + offset, mask=mask, other=0.0).to(tl.float32) * scale + shift
    value = tl.where(value >= 0, value, value * slope)
    tl.store(out + offset, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def activation_gradient(gradient, x, scale, shift, slope):  # type: ignore[no-untyped-def]
    return tl.where(x * scale + shift >= 0, gradient, gradient * slope)


@triton.jit  # type: ignore[untyped-decorator]
def sum_gradients(  # type: ignore[no-untyped-def]
    x, gradient, statistics, sums, rows, blocks, programs, slope,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Sum the gradient before the activation, and its product with x - mean."""
    mean = load_channels(statistics, 0, CHANNELS)
    scale, shift = load_channels(statistics, 2, CHANNELS), load_channels(statistics, 3, CHANNELS)
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(tl.program_id(0) * AHEAD, blocks, programs * AHEAD):
        for block in tl.static_range(AHEAD):
            offset, mask = locate_tile(start + block, rows, ROWS, CHANNELS)
            value = tl.load(x + offset, mask=mask, other=0.0).to(tl.float32)
            upstream = tl.load(gradient + offset, mask=mask, other=0.0).to(tl.float32)
            upstream = activation_gradient(upstream, value, scale, shift, slope)
            first += upstream
            second += upstream * (value - mean)
    store_sums(sums, first, second, CHANNELS)


@triton.jit  # type: ignore[untyped-decorator]
def finish_gradients(  # type: ignore[no-untyped-def]
    sums, statistics, of_weight, of_bias, factors, rows, eps, programs,
    CHANNELS: tl.constexpr, SHARES: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of weight and bias, and the factors of x and 1 in the gradient of x."""
    channel = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    first, second = add_shares(sums, programs, channel, CHANNELS, SHARES)
    mean, scale = tl.load(statistics + channel), tl.load(statistics + 2 * CHANNELS + channel)
    inverse = 1 / tl.sqrt(tl.load(statistics + CHANNELS + channel) + eps)
    tl.store(of_weight + channel, second * inverse)
    tl.store(of_bias + channel, first)
    factor_of_x = -scale * inverse * inverse * second / rows
    tl.store(factors + channel, factor_of_x)
    tl.store(factors + CHANNELS + channel, -scale * first / rows - factor_of_x * mean)


@triton.jit  # type: ignore[untyped-decorator]
def normalization_gradient(  # type: ignore[no-untyped-def]
    x, gradient, other, statistics, factors, out, rows, blocks, slope,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """Write the gradient of x; ADDS: plus the other gradient of x, from its other uses."""
    scale, shift = load_channels(statistics, 2, CHANNELS), load_channels(statistics, 3, CHANNELS)
    of_x, of_one = load_channels(factors, 0, CHANNELS), load_channels(factors, 1, CHANNELS)
    offset, mask = locate_tile(blocks - 1 - tl.program_id(0), rows, ROWS, CHANNELS)
    value = tl.load(x + offset, mask=mask, other=0.0).to(tl.float32)
    upstream = tl.load(gradient + offset, mask=mask, other=0.0).to(tl.float32)
    upstream = activation_gradient(upstream, value, scale, shift, slope)
    result = upstream * scale + value * of_x + of_one
    if ADDS:
        result += tl.load(other + offset, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + offset, result.to(out.dtype.element_ty), mask=mask)


def normalize(
    x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x + residual, its activation, and its `STATISTICS`; images are channels_last.

    Without a residual, x itself is the sum.
    """
    rows = x.numel() // x.shape[1]
    total = x if residual is None else torch.empty_like(x)
    sums, programs, options = allocate_sums(x, rows, MOMENTS)
    sum_moments[(programs,)](
        x, x if residual is None else residual, total, sums, rows,
        ADDS=residual is not None, **options,
    )  # fmt: skip
    return total, *normalize_summed(total, sums, weight, bias, eps, slope)


def normalize_summed(
    total: Tensor, sums: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """Return activation and `STATISTICS` of images, given their sums (programs, 2, channels)."""
    programs, _, channels = sums.shape
    rows = total.numel() // channels
    statistics = sums.new_empty((len(STATISTICS), channels))
    finish_moments[(channels // CHUNK,)](
        sums, weight, bias, statistics, rows, eps, **finish_options(programs, channels)
    )
    active = torch.empty_like(total)
    blocks, options = split_into_tiles(rows, channels, TILE)
    activate[(blocks,)](total, statistics, active, rows, blocks, slope, **options)
    return active, statistics


def gradients(
    x: Tensor, gradient: Tensor, other: Tensor | None, statistics: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the normalized sum, plus its `other` gradient, of weight and bias."""
    channels = x.shape[1]
    rows = x.numel() // channels
    sums, programs, options = allocate_sums(x, rows, GRADIENTS)
    sum_gradients[(programs,)](x, gradient, statistics, sums, rows, slope=slope, **options)
    of_weight, of_bias = statistics.new_empty(channels), statistics.new_empty(channels)
    factors = statistics.new_empty((2, channels))
    finish_gradients[(channels // CHUNK,)](
        sums, statistics, of_weight, of_bias, factors, rows, eps,
        **finish_options(programs, channels),
    )  # fmt: skip
    of_x = torch.empty_like(x)
    blocks, options = split_into_tiles(rows, channels, TILE)
    normalization_gradient[(blocks,)](
        x, gradient, x if other is None else other, statistics, factors, of_x, rows, blocks, slope,
        ADDS=other is not None, **options,
    )  # fmt: skip
    return of_x, of_weight, of_bias


Options = dict[str, int]  # keyword arguments of a kernel


def split_into_tiles(rows: int, channels: int, size: int) -> tuple[int, Options]:
    """Return the number of tiles of `size` elements, and the options of kernels that use them."""
    tile_rows = max(1, size // channels)
    options = {"ROWS": tile_rows, "CHANNELS": channels, "num_warps": WARPS}
    return triton.cdiv(rows, tile_rows), options


def allocate_sums(x: Tensor, rows: int, plan: Plan) -> tuple[Tensor, int, Options]:
    """Return memory for the programs' sums, the number of programs, and their options."""
    channels = x.shape[1]
    blocks, options = split_into_tiles(rows, channels, plan.tile)
    most = plan.per_processor * count_processors(x.device)
    programs = min(triton.cdiv(blocks, plan.ahead), most)
    sums = x.new_empty((programs, 2, channels), dtype=torch.float32)
    return sums, programs, {**options, "blocks": blocks, "programs": programs, "AHEAD": plan.ahead}


def finish_options(programs: int, channels: int) -> Options:
    shares = triton.next_power_of_2(programs)
    options = {"CHANNELS": channels, "SHARES": shares, "CHUNK": CHUNK, "num_warps": WARPS}
    return {"programs": programs, **options}
