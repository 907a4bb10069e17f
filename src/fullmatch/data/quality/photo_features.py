"""Features of photos by a pretrained network: what the checks compare instead of pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fullmatch.data.stores.image_store import ImageStore

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class PhotoFeatures:
    """One row per picture."""

    descriptors: NDArray[np.float16]  # (N, D), as the network gives them
    embeddings: Floats  # (N, d), centered on these pictures and reduced; rows of length 1
    weights: str  # the network that made them, such as timm:tf_efficientnet_lite0

    def __len__(self) -> int:
        return len(self.embeddings)


# Computes the features of the pictures of some stores; None if they are not photos.
Describe = Callable[[Sequence[ImageStore]], PhotoFeatures | None]


def find_nearest(rows: Floats, others: Floats, count: int) -> tuple[Floats, Rows]:
    """(N, count) largest cosine similarities of rows with others, and where they are.

    Compares in chunks, so that memory does not grow with the number of pairs.
    """
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(count, len(others)), metric="cosine")
    distances, index = search.fit(others).kneighbors(rows)
    return (1 - distances).astype(np.float32), index.astype(np.int64)


def find_neighbors(rows: Floats, count: int) -> tuple[Floats, Rows]:
    """The same among the rows themselves; a row is not its own neighbor."""
    similarities, index = find_nearest(rows, rows, count + 1)
    # Among duplicates, a row need not come first itself.
    own = index == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True
    keep = (len(rows), index.shape[1] - 1)
    return similarities[~own].reshape(keep), index[~own].reshape(keep)
