"""Unlabeled pictures that look unlike the labeled ones, by their colours and edges alone.

The rule: a picture is a stranger when its nearest labeled picture is more than `FAR` times as far
away as labeled pictures are from their own nearest, not counting the most lonely twentieth.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FAR = 3.0
FEW = 10  # labeled pictures below which nothing can be said
FEATURES = 8
CHUNK = 4096
FLOOR = 2.0  # grey levels: what differs less than this does not differ


def look(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(8,) features of pixels (3, H, W): mean and deviation of each colour, edges both ways."""
    values = pixels.astype(np.float32)
    grey = values.mean(axis=0)
    edges = [np.abs(np.diff(grey, axis=axis)).mean() for axis in (0, 1)]
    return np.asarray([*values.mean(axis=(1, 2)), *values.std(axis=(1, 2)), *edges], np.float32)


def strangers(labeled: NDArray[Any], unlabeled: NDArray[Any]) -> NDArray[np.bool_]:
    """Which unlabeled pictures are strangers, from the features (N, 8) of both."""
    if len(labeled) < FEW or not len(unlabeled):
        return np.zeros(len(unlabeled), dtype=bool)
    scale = np.maximum(labeled.std(axis=0), FLOOR)
    known, asked = labeled / scale, unlabeled / scale
    usual = float(np.quantile(_nearest(known, known, skip_self=True), 0.95))
    # A floor, since labeled pictures that are all alike would make strangers of the rest.
    return np.asarray(_nearest(asked, known) > FAR * max(usual, 0.5))


def _nearest(asked: NDArray[Any], known: NDArray[Any], skip_self: bool = False) -> NDArray[Any]:
    """Distance of each row to its nearest among the known."""
    found = []
    for start in range(0, len(asked), CHUNK):
        part = asked[start : start + CHUNK]
        squares = (part**2).sum(1)[:, None] - 2 * part @ known.T + (known**2).sum(1)[None, :]
        if skip_self:
            rows = np.arange(len(part))
            squares[rows, rows + start] = np.inf
        found.append(np.sqrt(np.maximum(squares.min(axis=1), 0)))
    return np.concatenate(found)
