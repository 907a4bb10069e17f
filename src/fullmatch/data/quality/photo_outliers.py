"""Find pictures of another kind than the labeled ones: a dog among cats, not only another camera.

A picture is typical if it is similar to labeled pictures, directly and through the pictures most
similar to it. It is an outlier if it is far less typical than most pictures.
"""

import numpy as np
from numpy.typing import NDArray

from fullmatch.data.quality.photo_features import Floats, find_nearest, find_neighbors

LABELED_NEIGHBORS, NEIGHBORS = 3, 5
MIN_LABELED = 10  # with fewer labeled pictures, nothing is called an outlier
MIN_PICTURES = 30
MIN_USUAL = 0.15  # smallest usual deviation, in case pictures are nearly identical
# Usual deviations below the median. Descriptors of a network separate other kinds of pictures
# better than embeddings, which are centered on the pictures at hand.
FAR_IN_DESCRIPTORS, FAR_IN_EMBEDDINGS = 2.0, 1.5


def find_photo_outliers(
    features: NDArray[np.floating], labeled: NDArray[np.bool_], far: float = FAR_IN_DESCRIPTORS
) -> list[int]:
    """Rows of pictures without a label that are outliers, the least typical first.

    Features (N, D) are those of all pictures.
    """
    if labeled.sum() < MIN_LABELED or len(features) < MIN_PICTURES:
        return []
    typical = measure_typicality(np.asarray(features, np.float32), labeled)
    median = float(np.median(typical))
    # By the lower half only: the most typical pictures are often near duplicates.
    below = median - typical[typical <= median]
    # The standard deviation, if it were a bell curve.
    usual = max(1.4826 * float(np.median(below)), MIN_USUAL)
    outliers = np.flatnonzero((typical < median - far * usual) & ~labeled)
    return [int(at) for at in outliers[np.argsort(typical[outliers])]]


def measure_typicality(rows: Floats, labeled: NDArray[np.bool_]) -> Floats:
    """(N,) how similar pictures are to labeled ones, directly and through their neighbors."""
    direct, index = find_nearest(rows, rows[labeled], LABELED_NEIGHBORS + 1)
    own = np.flatnonzero(labeled)[index] == np.arange(len(rows))[:, None]
    # A labeled picture does not count for itself.
    direct = np.where(own, -np.inf, direct)
    to_labeled = np.sort(direct, axis=1)[:, -LABELED_NEIGHBORS:].mean(axis=1)
    similarities, neighbors = find_neighbors(rows, NEIGHBORS)
    through_neighbors = to_labeled[neighbors].mean(axis=1)
    return np.asarray(to_labeled + through_neighbors + similarities.mean(axis=1), np.float32)
