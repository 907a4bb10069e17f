"""Which pictures are the same, and which are nearly so, without comparing every pair."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

GRID = 9  # the picture is compared with its neighbours on a 9x9 grid: 2 x 64 bits
SMALL = 16  # side of the grey miniature that settles a candidate
BAND = 2  # bytes; two hashes that differ in fewer than 8 bits agree in one band of 16 at least
NEIGHBOURS = 8  # others with an equal band that a picture is compared with
ALIKE = 0.99  # least correlation of two miniatures
BLANK = 2.0  # deviation of grey levels below which a picture shows nothing to correlate


def perceptual_hash(image: Image.Image) -> NDArray[np.uint8]:
    """(16,) bytes: on a coarse grid, is each cell brighter than the one before and above it?"""
    box = Image.Resampling.BOX
    cells = np.asarray(image.convert("L").resize((GRID, GRID), box)).astype(np.int16)
    # A step of one level is noise.
    across = cells[:-1, 1:] > cells[:-1, :-1] + 1
    down = cells[1:, :-1] > cells[:-1, :-1] + 1
    return np.packbits(np.concatenate([across.ravel(), down.ravel()]))


def miniature(image: Image.Image) -> NDArray[np.uint8]:
    """(256,) grey levels."""
    small = image.convert("L").resize((SMALL, SMALL), Image.Resampling.BOX)
    return np.asarray(small).ravel()


def exact_groups(digests: Sequence[bytes]) -> list[list[int]]:
    """Positions of pictures with equal digests, for every digest that occurs twice or more."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for position, digest in enumerate(digests):
        places[digest].append(position)
    return [group for group in places.values() if len(group) > 1]


def near_groups(
    hashes: NDArray[np.uint8], miniatures: NDArray[np.uint8], colors: NDArray[Any]
) -> list[list[int]]:
    """Positions of pictures that look alike; a few may be missed, so that millions are no burden.

    `colors` are mean levels per channel: a red square is no copy of a blue one.
    """
    pairs = _candidates(hashes)
    if not len(pairs):
        return []
    first, second = pairs[:, 0], pairs[:, 1]
    alike = _correlation(miniatures[first], miniatures[second]) >= ALIKE
    alike &= np.abs(colors[first] - colors[second]).max(axis=1) < 12
    return joined(pairs[alike].tolist())


def _candidates(hashes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Pairs whose hashes agree in a band."""
    found = []
    for start in range(0, hashes.shape[1], BAND):
        band = hashes[:, start].astype(np.int64) * 256 + hashes[:, start + 1]
        order = np.argsort(band, kind="stable")
        for shift in range(1, min(NEIGHBOURS, len(order) - 1) + 1):
            equal = band[order[shift:]] == band[order[:-shift]]
            found.append(np.stack([order[:-shift][equal], order[shift:][equal]], axis=1))
    if not found:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
    differing = np.bitwise_count(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]]).sum(axis=1)
    return np.asarray(pairs[differing < hashes.shape[1] // BAND])


def _correlation(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Of rows; blank pictures are alike when both are."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    spread_a, spread_b = a.std(axis=1), b.std(axis=1)
    product = ((a - a.mean(axis=1, keepdims=True)) * (b - b.mean(axis=1, keepdims=True))).mean(1)
    shown = (spread_a >= BLANK) & (spread_b >= BLANK)
    blank = (spread_a < BLANK) & (spread_b < BLANK)
    found = np.where(shown, product / np.maximum(spread_a * spread_b, 1e-6), blank)
    return np.asarray(found, np.float32)


def joined(pairs: Iterable[Sequence[int]]) -> list[list[int]]:
    """Groups of whatever is connected through pairs."""
    home: dict[int, int] = {}

    def root(item: int) -> int:
        while home.setdefault(item, item) != item:
            home[item] = item = home[home[item]]
        return item

    for a, b in pairs:
        home[root(b)] = root(a)
    groups: dict[int, list[int]] = defaultdict(list)
    for item in sorted(home):
        groups[root(item)].append(item)
    return list(groups.values())
