"""What users pass to the estimator: pictures of any layout, paths, features, any labels."""

import math
import os
import warnings
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

Array = NDArray[Any]
DARK = 32  # if no pixel is lighter than this, the range is probably not 0 to 255


class InputKind(StrEnum):
    """What X holds."""

    PATHS = "paths of pictures"
    PICTURES = "pictures"
    FEATURES = "rows of features"


def detect_kind(X: Any, image_shape: tuple[int, ...] | None) -> InputKind:
    """Rows of numbers are features, unless `image_shape` says which pictures they are."""
    if are_paths(X):
        return InputKind.PATHS
    if isinstance(X, list | tuple) and any(isinstance(x, str | os.PathLike) for x in X):
        raise ValueError("X: expected paths of pictures or arrays, got both in one list")
    if issparse(X):
        raise TypeError(
            "X: sparse rows are not supported; reduce them first, such as with "
            "make_pipeline(TruncatedSVD(100), FullMatchClassifier()), or use X.toarray()"
        )
    rows = count_dimensions(X) < 3 and image_shape is None
    return InputKind.FEATURES if rows else InputKind.PICTURES


def count_dimensions(X: Any) -> int:
    try:
        return int(np.asarray(X).ndim)
    except ValueError:  # NumPy's own message is about sequences
        raise ValueError(
            "X: expected pictures of one size, or rows of one length, got several; resize the "
            "pictures, or pass paths of files"
        ) from None


def to_channels_first(X: Array, image_shape: tuple[int, ...] | None) -> Array:
    """(N, channels, H, W) from any layout; rows of pixels are reshaped to `image_shape` first."""
    original = X.shape
    if X.ndim == 2 and image_shape is not None:
        try:
            X = X.reshape(len(X), *image_shape)
        except TypeError:
            raise ValueError(
                f"image_shape: expected integers such as (8, 8), got {image_shape!r}"
            ) from None
        except ValueError:
            raise ValueError(
                f"image_shape: {tuple(image_shape)} does not hold {X.shape[1]} pixels"
            ) from None
    if X.ndim == 3:
        X = X[:, None]
    elif X.ndim == 4 and X.shape[3] in (1, 3):
        X = X.transpose(0, 3, 1, 2)
    if X.ndim != 4 or X.shape[1] not in (1, 3):
        raise ValueError(
            "X: expected pictures (N, H, W), or (N, H, W, C) or (N, C, H, W) of 1 or 3 channels, "
            f"got {original}"
        )
    return X


def parse_labels(y: ArrayLike, count: int) -> tuple[Array, NDArray[np.bool_]]:
    """Labels as an array, and which of them are known."""
    labels: Array = column_or_1d(np.asarray(y), warn=True)
    if labels.dtype.kind in "US" and isinstance(y, list | tuple):
        labels = np.array(y, dtype=object)  # NumPy has turned numbers into strings
    if len(labels) != count:
        raise ValueError(f"y: expected {count} labels, one per sample, got {len(labels)}")
    if labels.dtype.kind in "biuf":
        known = ~np.isnan(labels) & (labels != -1) if labels.dtype.kind == "f" else labels != -1
    else:
        known = np.array([is_label(value) for value in labels.tolist()], bool)
        if len({isinstance(label, str) for label in labels[known].tolist()}) > 1:
            raise ValueError("y: expected labels of one type, got numbers and strings")
        values = np.array(labels[known].tolist())  # of the type that the known ones have
        labels = np.zeros(count, values.dtype)
        labels[known] = values
    if known.any():
        check_classification_targets(labels[known])
    return labels, known


def is_label(value: Any) -> bool:
    """Whether it is not one of the values that mean unlabeled."""
    if value is None or type(value).__name__ == "NAType":  # of pandas
        return False
    # NumPy turns -1 into "-1" among strings; only NaN differs from itself.
    return value not in ("", -1, "-1") and value == value


def are_paths(X: Any) -> bool:
    """Whether these are paths of files rather than pixels."""
    if not isinstance(X, list | tuple):
        if getattr(X, "ndim", 0) != 1:  # neither an array nor a column of a data frame
            return False
        X = np.asarray(X).tolist()
    return len(X) > 0 and all(isinstance(x, str | os.PathLike) for x in X)


def to_bytes(X: Array, low: float, high: float) -> NDArray[np.uint8]:
    """Pixels as bytes; `low` is black and `high` is white."""
    if not (X.min() >= low and X.max() <= high):  # written so that NaN fails too
        # scikit-learn's checks look for these words.
        negative = "; Negative values in data" if X.min() < 0 else ""
        raise ValueError(
            f"X: expected pixels from {low:g} to {high:g}, got {X.min():g} to {X.max():g}; "
            "set pixel_range to the values of black and white, or clip what scales them "
            f"(MinMaxScaler(clip=True)){negative}"
        )
    if X.dtype == np.uint8 and (low, high) == (0, 255):
        return X
    scaled = (X.astype(np.float64) - low) * (255 / (high - low))
    return np.rint(scaled).astype(np.uint8)


def resolve_pixel_range(X: Array, requested: tuple[float, float] | None) -> tuple[float, float]:
    """The values of black and white: as requested, or from the data type and the largest value."""
    if requested is None:
        unit = X.dtype.kind == "b" or (X.dtype.kind == "f" and X.max() <= 1)
        if not unit and 0 < X.max() < DARK:
            warnings.warn(
                f"X: black is assumed to be 0 and white 255, but the largest pixel is {X.max():g}; "
                "set pixel_range if they are not",
                stacklevel=4,
            )
        return 0.0, 1.0 if unit else 255.0
    try:
        low, high = map(float, requested)
    except (TypeError, ValueError):
        low = high = 0.0
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"pixel_range: expected (low, high), got {requested!r}")
    return low, high


def allows_negative_pixels(requested: tuple[float, float] | None) -> bool:
    """Whether the range includes negative pixels; a wrong range is reported when fitting."""
    try:
        return requested is not None and resolve_pixel_range(np.empty(0), requested)[0] < 0
    except ValueError:
        return False
