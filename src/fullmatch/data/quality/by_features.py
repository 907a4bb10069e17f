"""Outliers and labels that look wrong, by features of a pretrained network.

Features know what a picture shows: they find a dog among cats, which colors and edges do not.
"""

import numpy as np
from numpy.typing import NDArray

NEIGHBORS = 10
FEW = 30  # pictures below which nothing can be said
DISAGREE = 0.8  # of the neighbors, before a label looks wrong

Floats = NDArray[np.float32]
Classes = NDArray[np.int64]


def nearest_similarities(rows: Floats, others: Floats, count: int) -> tuple[Floats, Classes]:
    """(N, count) largest dot products of unit-length rows with others, and where they are."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(count, len(others)), metric="cosine")
    distances, index = search.fit(others).kneighbors(rows)
    return (1 - distances).astype(np.float32), index.astype(np.int64)


def find_feature_outliers(features: Floats, labeled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pictures are far from every labeled one, compared with the usual distance.

    The limit is 1.5 interquartile ranges below the first quartile of similarities to the nearest
    labeled picture, as in a box plot.
    """
    outlier = np.zeros(len(features), bool)
    if labeled.sum() < 2 or len(features) < FEW:
        return outlier
    similarity = nearest_similarities(features, features[labeled], 2)[0]
    # A labeled picture is its own nearest.
    nearest = np.where(labeled, similarity[:, -1], similarity[:, 0])
    low, high = np.quantile(nearest, [0.25, 0.75])
    outlier[nearest < low - 1.5 * (high - low)] = True
    return outlier & ~labeled


def find_suspect_labels(features: Floats, labels: Classes, predicted: Classes) -> NDArray[np.bool_]:
    """Which labels (-1 where unknown) most of a picture's neighbors disagree with.

    A neighbor counts by its label, or else by its prediction; the picture itself does not count.
    """
    suspect = np.zeros(len(features), bool)
    labeled = np.flatnonzero(labels >= 0)
    if len(features) < FEW or not len(labeled):
        return suspect
    classes = np.where(labels >= 0, labels, predicted)
    index = nearest_similarities(features[labeled], features, NEIGHBORS + 1)[1]
    others = np.where(index == labeled[:, None], -1, classes[index])
    disagree = ((others >= 0) & (others != labels[labeled][:, None])).sum(axis=1)
    suspect[labeled] = disagree >= DISAGREE * NEIGHBORS
    return suspect
