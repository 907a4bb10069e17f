"""Find exact and near duplicates without comparing every pair of pictures."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

GRID = 9  # the hash compares neighboring cells of a 9x9 grid: 2 x 64 bits
THUMBNAIL_SIDE = 16  # of the gray thumbnail that confirms a candidate
BAND = 2  # bytes; hashes that differ in fewer than 8 bits agree in at least one of 8 bands
MAX_NEIGHBORS = 8  # pictures with an equal band that each picture is compared with
MIN_CORRELATION = 0.99  # of two thumbnails
MAX_COLOR_DIFFERENCE = 12  # between the mean levels of a channel
BLANK_STD = 2.0  # gray levels; below this a picture has no pattern to correlate


def perceptual_hash(image: Image.Image) -> NDArray[np.uint8]:
    """(16,) bytes: on a coarse grid, whether the right and the lower neighbor are brighter."""
    box = Image.Resampling.BOX
    cells = np.asarray(image.convert("L").resize((GRID, GRID), box)).astype(np.int16)
    # A difference of one level is noise.
    across = cells[:-1, 1:] > cells[:-1, :-1] + 1
    down = cells[1:, :-1] > cells[:-1, :-1] + 1
    return np.packbits(np.concatenate([across.ravel(), down.ravel()]))


def gray_thumbnail(image: Image.Image) -> NDArray[np.uint8]:
    """(256,) gray levels of the picture at 16x16."""
    side = THUMBNAIL_SIDE
    return np.asarray(image.convert("L").resize((side, side), Image.Resampling.BOX)).ravel()


def find_exact_duplicates(digests: Sequence[bytes]) -> list[list[int]]:
    """Groups of positions with equal digests."""
    positions: dict[bytes, list[int]] = defaultdict(list)
    for position, digest in enumerate(digests):
        positions[digest].append(position)
    return [group for group in positions.values() if len(group) > 1]


def find_near_duplicates(
    hashes: NDArray[np.uint8], thumbnails: NDArray[np.uint8], colors: NDArray[Any]
) -> list[list[int]]:
    """Groups of positions that look alike; a few may be missed, to stay fast for millions.

    `colors` are the mean levels per channel: a red square is not a duplicate of a blue one.
    """
    pairs = _candidate_pairs(hashes)
    if not len(pairs):
        return []
    first, second = pairs[:, 0], pairs[:, 1]
    alike = _correlate(thumbnails[first], thumbnails[second]) >= MIN_CORRELATION
    alike &= np.abs(colors[first] - colors[second]).max(axis=1) < MAX_COLOR_DIFFERENCE
    return connected_groups(pairs[alike])


def connected_groups(pairs: NDArray[np.int64]) -> list[list[int]]:
    """Groups of numbers that are connected through pairs (N, 2), in ascending order."""
    if not len(pairs):
        return []
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    members, nodes = np.unique(pairs, return_inverse=True)
    nodes = nodes.reshape(pairs.shape)
    edges = coo_array((np.ones(len(nodes)), (nodes[:, 0], nodes[:, 1])), (len(members),) * 2)
    _, component = connected_components(edges, directed=False)
    order = np.argsort(component, kind="stable")
    starts = np.flatnonzero(np.diff(component[order])) + 1
    return sorted(group.tolist() for group in np.split(members[order], starts))


def _candidate_pairs(hashes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Pairs (N, 2) of positions whose hashes agree in a band."""
    batches = []
    for start in range(0, hashes.shape[1], BAND):
        band = hashes[:, start].astype(np.int64) * 256 + hashes[:, start + 1]
        order = np.argsort(band, kind="stable")
        for shift in range(1, min(MAX_NEIGHBORS, len(order) - 1) + 1):
            equal = band[order[shift:]] == band[order[:-shift]]
            batches.append(np.stack([order[:-shift][equal], order[shift:][equal]], axis=1))
    if not batches:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.unique(np.sort(np.concatenate(batches), axis=1), axis=0)
    differing = np.bitwise_count(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]]).sum(axis=1)
    return np.asarray(pairs[differing < hashes.shape[1] // BAND])


def _correlate(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Correlation of rows; 1 if both are blank, 0 if one of them is."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    std_a, std_b = a.std(axis=1), b.std(axis=1)
    product = ((a - a.mean(axis=1, keepdims=True)) * (b - b.mean(axis=1, keepdims=True))).mean(1)
    neither_blank = (std_a >= BLANK_STD) & (std_b >= BLANK_STD)
    both_blank = (std_a < BLANK_STD) & (std_b < BLANK_STD)
    correlation = np.where(neither_blank, product / np.maximum(std_a * std_b, 1e-6), both_blank)
    return np.asarray(correlation, np.float32)
