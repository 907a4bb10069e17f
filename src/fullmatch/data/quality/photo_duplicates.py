"""Find photos that repeat others: resized, mirrored or cropped.

Features choose which pictures to compare, pixels decide: two photos of the same kind have similar
features, and are not duplicates.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fullmatch.data.quality.alignment import FINE, ComparedPicture, Likeness, find_overlap, prepare
from fullmatch.data.quality.photo_features import Floats, find_neighbors
from fullmatch.data.stores.pictures import convert_image, try_read

NEIGHBORS = 5  # pictures that each one is compared with
MIN_SIMILARITY = 0.35  # of features; most crops of two thirds of a photo have more
MOST_PREPARED = 500  # pictures kept in memory

OpenPicture = Callable[[str], Image.Image]  # opens a picture by its name


class PhotoDuplicate(NamedTuple):
    """A photo that repeats another one."""

    at: int
    original: int
    likeness: Likeness


def propose_pairs(embeddings: Floats) -> NDArray[np.int64]:
    """(M, 2) positions of pictures with similar features, in ascending order."""
    if len(embeddings) < 2:
        return np.empty((0, 2), np.int64)
    similarities, neighbors = find_neighbors(embeddings, min(NEIGHBORS, len(embeddings) - 1))
    first = np.repeat(np.arange(len(embeddings)), neighbors.shape[1])
    pairs = np.stack([first, neighbors.ravel()], axis=1)[similarities.ravel() >= MIN_SIMILARITY]
    return np.unique(np.sort(pairs, axis=1), axis=0)


class PhotoComparison:
    """Compares pictures in pairs, and keeps recent ones prepared."""

    def __init__(self, names: Sequence[str], open_picture: OpenPicture) -> None:
        self.names, self.open_picture = names, open_picture
        self.prepared: OrderedDict[int, ComparedPicture | None] = OrderedDict()

    def compare(self, first: int, second: int) -> PhotoDuplicate | None:
        """Which of two pictures repeats the other; None if neither does."""
        pictures = self.prepare(first), self.prepare(second)
        if pictures[0] is None or pictures[1] is None:
            return None
        overlap = find_overlap(pictures[0], pictures[1])
        if overlap is None:
            return None
        at, original = (first, second) if overlap.first_is_inner else (second, first)
        return PhotoDuplicate(at, original, overlap.likeness)

    def prepare(self, at: int) -> ComparedPicture | None:
        """None if the file has become unreadable."""
        if at not in self.prepared:
            self.prepared[at] = try_read(self.read, self.names[at])
            if len(self.prepared) > MOST_PREPARED:
                self.prepared.popitem(last=False)
        self.prepared.move_to_end(at)
        return self.prepared[at]

    def read(self, name: str) -> ComparedPicture:
        with self.open_picture(name) as image:
            image.draft(None, (2 * FINE, 2 * FINE))
            return prepare(convert_image(image, 3))
