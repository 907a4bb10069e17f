"""Triton kernels for an addition, batch norm and leaky ReLU, most of a step's memory traffic.

Images are channels_last, so all of them together are rows of channels. What a channel needs is
computed once, in a kernel of its own; what every element needs is then little more than reading and
writing it. The second pass over a tensor goes the other way round, because a cache still holds what
the first has read last.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from fullmatch.models.kernels.device import count_processors
from fullmatch.models.kernels.layout import STATISTICS

WARPS = 8
TILE = 4096  # elements of a program that computes each by itself
SOME = 8  # channels of a program that adds up their sums


class Plan(NamedTuple):
    """How a kernel sums; measured."""

    tile: int  # elements at a time, for each of which a program has sums of its own
    ahead: int  # tiles that are read together, because memory answers late
    each: int  # programs for every processor of the device


MOMENTS, GRADIENTS = Plan(8192, 1, 2), Plan(4096, 2, 2)


@triton.jit  # type: ignore[untyped-decorator]
def place(block, rows, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where the elements of a tile are, and which of them exist."""
    row = block * ROWS + tl.arange(0, ROWS)[:, None]
    return row * CHANNELS + tl.arange(0, CHANNELS)[None, :], row < rows


@triton.jit  # type: ignore[untyped-decorator]
def of_channels(table, line, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(table + line * CHANNELS + tl.arange(0, CHANNELS))[None, :]


@triton.jit  # type: ignore[untyped-decorator]
def store_sums(sums, first, second, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    """This program's share of two sums over all rows."""
    mine = sums + tl.program_id(0) * (2 * CHANNELS) + tl.arange(0, CHANNELS)
    tl.store(mine, tl.sum(first, axis=0))
    tl.store(mine + CHANNELS, tl.sum(second, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def total_of(sums, programs, channel, CHANNELS: tl.constexpr, LINES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Both sums of some channels, from the shares of all programs, always in the same order."""
    line = tl.arange(0, LINES)[:, None]
    at, there = line * (2 * CHANNELS) + channel[None, :], line < programs
    first = tl.load(sums + at, mask=there, other=0.0)
    second = tl.load(sums + at + CHANNELS, mask=there, other=0.0)
    return tl.sum(first, axis=0), tl.sum(second, axis=0)


@triton.jit  # type: ignore[untyped-decorator]
def sum_moments(  # type: ignore[no-untyped-def]
    x, path, total, sums, rows, blocks, programs,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, AHEAD: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """Sums of the elements and of their squares; if asked to, of x + path, which is stored."""
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(tl.program_id(0) * AHEAD, blocks, programs * AHEAD):
        for block in tl.static_range(AHEAD):
            at, there = place(start + block, rows, ROWS, CHANNELS)
            value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
            if ADDS:
                value += tl.load(path + at, mask=there, other=0.0).to(tl.float32)
                kept = value.to(total.dtype.element_ty)
                tl.store(total + at, kept, mask=there)
                value = kept.to(tl.float32)  # the statistics are of what the next kernel reads
            first += value
            second += value * value
    store_sums(sums, first, second, CHANNELS)


@triton.jit  # type: ignore[untyped-decorator]
def finish_moments(  # type: ignore[no-untyped-def]
    sums, weight, bias, found, rows, eps, programs,
    CHANNELS: tl.constexpr, LINES: tl.constexpr, SOME: tl.constexpr,
):  # fmt: skip
    """The lines of `STATISTICS` for some channels."""
    channel = tl.program_id(0) * SOME + tl.arange(0, SOME)
    first, second = total_of(sums, programs, channel, CHANNELS, LINES)
    mean = first / rows
    variance = tl.maximum(second / rows - mean * mean, 0.0)
    scale = tl.load(weight + channel) / tl.sqrt(variance + eps)
    tl.store(found + channel, mean)
    tl.store(found + CHANNELS + channel, variance)
    tl.store(found + 2 * CHANNELS + channel, scale)
    tl.store(found + 3 * CHANNELS + channel, tl.load(bias + channel) - mean * scale)
    tl.store(found + 4 * CHANNELS + channel, variance * (rows / tl.maximum(rows - 1, 1)))


@triton.jit  # type: ignore[untyped-decorator]
def activate(  # type: ignore[no-untyped-def]
    x, found, out, rows, blocks, slope, ROWS: tl.constexpr, CHANNELS: tl.constexpr
):
    scale, shift = of_channels(found, 2, CHANNELS), of_channels(found, 3, CHANNELS)
    at, there = place(blocks - 1 - tl.program_id(0), rows, ROWS, CHANNELS)
    value = tl.load(x + at, mask=there, other=0.0).to(tl.float32) * scale + shift
    value = tl.where(value >= 0, value, value * slope)
    tl.store(out + at, value.to(out.dtype.element_ty), mask=there)


@triton.jit
def through_activation(gradient, x, scale, shift, slope):  # type: ignore[no-untyped-def]
    return tl.where(x * scale + shift >= 0, gradient, gradient * slope)


@triton.jit  # type: ignore[untyped-decorator]
def sum_gradients(  # type: ignore[no-untyped-def]
    x, gradient, found, sums, rows, blocks, programs, slope,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Sums of the gradient before the activation, and of it times x - mean."""
    mean = of_channels(found, 0, CHANNELS)
    scale, shift = of_channels(found, 2, CHANNELS), of_channels(found, 3, CHANNELS)
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(tl.program_id(0) * AHEAD, blocks, programs * AHEAD):
        for block in tl.static_range(AHEAD):
            at, there = place(start + block, rows, ROWS, CHANNELS)
            value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
            slopes = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
            slopes = through_activation(slopes, value, scale, shift, slope)
            first += slopes
            second += slopes * (value - mean)
    store_sums(sums, first, second, CHANNELS)


@triton.jit  # type: ignore[untyped-decorator]
def finish_gradients(  # type: ignore[no-untyped-def]
    sums, found, of_weight, of_bias, factors, rows, eps, programs,
    CHANNELS: tl.constexpr, LINES: tl.constexpr, SOME: tl.constexpr,
):  # fmt: skip
    """Gradients of weight and bias, and by what factors x and 1 count in the gradient of x."""
    channel = tl.program_id(0) * SOME + tl.arange(0, SOME)
    first, second = total_of(sums, programs, channel, CHANNELS, LINES)
    mean, scale = tl.load(found + channel), tl.load(found + 2 * CHANNELS + channel)
    inverse = 1 / tl.sqrt(tl.load(found + CHANNELS + channel) + eps)
    tl.store(of_weight + channel, second * inverse)
    tl.store(of_bias + channel, first)
    of_x = -scale * inverse * inverse * second / rows
    tl.store(factors + channel, of_x)
    tl.store(factors + CHANNELS + channel, -scale * first / rows - of_x * mean)


@triton.jit  # type: ignore[untyped-decorator]
def normalization_gradient(  # type: ignore[no-untyped-def]
    x, gradient, other, found, factors, out, rows, blocks, slope,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """The gradient of x, to which that of x's other uses is added."""
    scale, shift = of_channels(found, 2, CHANNELS), of_channels(found, 3, CHANNELS)
    of_x, of_one = of_channels(factors, 0, CHANNELS), of_channels(factors, 1, CHANNELS)
    at, there = place(blocks - 1 - tl.program_id(0), rows, ROWS, CHANNELS)
    value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
    slopes = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
    result = through_activation(slopes, value, scale, shift, slope) * scale + value * of_x + of_one
    if ADDS:
        result += tl.load(other + at, mask=there, other=0.0).to(tl.float32)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=there)


def normalize(
    x: Tensor, path: Tensor | None, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of channels_last images: x + path, its activation, and the lines of `STATISTICS`.

    Without a path, x is its own sum.
    """
    rows = x.numel() // x.shape[1]
    total = x if path is None else torch.empty_like(x)
    sums, programs, summed = shares(x, rows, MOMENTS)
    sum_moments[(programs,)](
        x, x if path is None else path, total, sums, rows, ADDS=path is not None, **summed
    )
    return total, *normalize_summed(total, sums, weight, bias, eps, slope)


def normalize_summed(
    total: Tensor, sums: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor]:
    """Activation and `STATISTICS` of images whose sums are known, in (programs, 2, channels)."""
    programs, _, channels = sums.shape
    rows = total.numel() // channels
    found = sums.new_empty((len(STATISTICS), channels))
    finish_moments[(channels // SOME,)](
        sums, weight, bias, found, rows, eps, **finished(programs, channels)
    )
    active = torch.empty_like(total)
    blocks, tiled = tiles(rows, channels, TILE)
    activate[(blocks,)](total, found, active, rows, blocks, slope, **tiled)
    return active, found


def gradients(
    x: Tensor, gradient: Tensor, other: Tensor | None, found: Tensor, eps: float, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the sum that was normalised, of weight and of bias; `other` is the sum's own gradient."""
    channels = x.shape[1]
    rows = x.numel() // channels
    sums, programs, summed = shares(x, rows, GRADIENTS)
    sum_gradients[(programs,)](x, gradient, found, sums, rows, slope=slope, **summed)
    of_weight, of_bias = found.new_empty(channels), found.new_empty(channels)
    factors = found.new_empty((2, channels))
    finish_gradients[(channels // SOME,)](
        sums, found, of_weight, of_bias, factors, rows, eps, **finished(programs, channels)
    )
    of_x = torch.empty_like(x)
    blocks, tiled = tiles(rows, channels, TILE)
    normalization_gradient[(blocks,)](
        x, gradient, x if other is None else other, found, factors, of_x, rows, blocks, slope,
        ADDS=other is not None, **tiled,
    )  # fmt: skip
    return of_x, of_weight, of_bias


Options = dict[str, int]  # of a kernel


def tiles(rows: int, channels: int, size: int) -> tuple[int, Options]:
    """How many tiles of that many elements there are, and what kernels must know of them."""
    each = max(1, size // channels)
    return triton.cdiv(rows, each), {"ROWS": each, "CHANNELS": channels, "num_warps": WARPS}


def shares(x: Tensor, rows: int, plan: Plan) -> tuple[Tensor, int, Options]:
    """Where programs put their sums, how many they are, and what they must know."""
    channels = x.shape[1]
    blocks, options = tiles(rows, channels, plan.tile)
    programs = min(triton.cdiv(blocks, plan.ahead), plan.each * count_processors(x.device))
    sums = x.new_empty((programs, 2, channels), dtype=torch.float32)
    return sums, programs, {**options, "blocks": blocks, "programs": programs, "AHEAD": plan.ahead}


def finished(programs: int, channels: int) -> Options:
    lines = triton.next_power_of_2(programs)
    options = {"CHANNELS": channels, "LINES": lines, "SOME": SOME, "num_warps": WARPS}
    return {"programs": programs, **options}
