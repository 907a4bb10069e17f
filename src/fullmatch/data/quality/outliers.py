"""Find unlabeled pictures that are unlike the labeled ones, by color and edges only.

A picture is an outlier if the distance to its nearest labeled picture is more than `FAR` times the
usual distance between nearest labeled pictures (their 95th percentile).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FAR = 3.0
MIN_LABELED = 10  # with fewer labeled pictures, nothing is called an outlier
MANY = 0.2  # share of outliers from which training should expect unknown classes
MIN_STD = 2.0  # gray levels; smaller differences do not count
MIN_USUAL = 0.5  # smallest usual distance, in case the labeled pictures are nearly identical


def extract_features(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(8,) features of pixels (3, H, W): mean and std of each color, edges in both directions."""
    values = pixels.astype(np.float32)
    gray = values.mean(axis=0)
    edges = [np.abs(np.diff(gray, axis=axis)).mean() for axis in (0, 1)]
    return np.asarray([*values.mean(axis=(1, 2)), *values.std(axis=(1, 2)), *edges], np.float32)


def find_outliers(labeled: NDArray[Any], unlabeled: NDArray[Any]) -> NDArray[np.bool_]:
    """Which unlabeled pictures are outliers, from the features (N, 8) of both."""
    if len(labeled) < MIN_LABELED or not len(unlabeled):
        return np.zeros(len(unlabeled), dtype=bool)
    from sklearn.neighbors import NearestNeighbors  # takes a second, so only when needed

    scale = np.maximum(labeled.std(axis=0), MIN_STD)
    index = NearestNeighbors(n_neighbors=1).fit(labeled / scale)
    between_labeled, _ = index.kneighbors()  # each picture's nearest other one
    usual = max(float(np.quantile(between_labeled, 0.95)), MIN_USUAL)
    to_labeled, _ = index.kneighbors(unlabeled / scale)
    return np.asarray(to_labeled[:, 0] > FAR * usual)
