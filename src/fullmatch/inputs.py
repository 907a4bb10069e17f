"""What people hand to the estimator: pictures of any layout, labels of any kind, or paths."""

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

Array = NDArray[Any]
DARK = 32  # of 255: pictures without a lighter pixel are more likely of another range


def laid_out(X: Array, image_shape: tuple[int, ...] | None) -> Array:
    """(N, channels, H, W) of any layout; rows of pixels are folded to `image_shape` first."""
    given = X.shape
    if X.ndim == 2 and image_shape is not None:
        try:
            X = X.reshape(len(X), *image_shape)
        except TypeError:
            raise ValueError(
                f"image_shape: expected whole numbers such as (8, 8), got {image_shape!r}"
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
            f"got {given}"
        )
    return X


def labels_of(y: ArrayLike, count: int) -> tuple[Array, NDArray[np.bool_]]:
    """Labels as an array, and which of them are known."""
    found: Array = column_or_1d(np.asarray(y), warn=True)
    if len(found) != count:
        raise ValueError(f"y: expected {count} labels, one per picture, got {len(found)}")
    if found.dtype.kind in "biuf":
        known = ~np.isnan(found) & (found != -1) if found.dtype.kind == "f" else found != -1
    else:
        # NumPy makes the word "-1" of a -1 among words; NaN alone differs from itself.
        known = np.array([v not in (None, "", -1, "-1") and v == v for v in found.tolist()], bool)
    if len({isinstance(label, str) for label in found[known].tolist()}) > 1:
        raise ValueError("y: expected labels of one kind, got numbers among words")
    if known.any():
        check_classification_targets(found[known])
    return found, known


def are_paths(X: Any) -> bool:
    """Whether these are files' paths rather than pixels."""
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype.kind not in "OU"):
        return False
    if not isinstance(X, np.ndarray | list | tuple) or not len(X):
        return False
    return all(isinstance(x, str | os.PathLike) for x in X)


def pixel_bytes(X: Array, low: float, high: float) -> NDArray[np.uint8]:
    """Pixels as bytes, black being `low` and white `high`."""
    if not (X.min() >= low and X.max() <= high):  # so written that NaN fails too
        # scikit-learn looks for its own words about negative values.
        negative = "; Negative values in data" if X.min() < 0 else ""
        raise ValueError(
            f"X: expected pixels from {low:g} to {high:g}, got {X.min():g} to {X.max():g}; "
            "say what black and white are with pixel_range, or keep what scales them inside it "
            f"(MinMaxScaler(clip=True)){negative}"
        )
    if X.dtype == np.uint8 and (low, high) == (0, 255):
        return X
    scaled = (X.astype(np.float64) - low) * (255 / (high - low))
    return np.rint(scaled).astype(np.uint8)


def pixel_range(X: Array, asked: tuple[float, float] | None) -> tuple[float, float]:
    """What black and white are: as asked, or by the kind of numbers and the largest of them."""
    if asked is None:
        unit = X.dtype.kind == "b" or (X.dtype.kind == "f" and X.max() <= 1)
        if not unit and X.dtype != np.uint8 and 0 < X.max() < DARK:  # bytes are bytes
            warnings.warn(
                f"X: black is taken as 0 and white as 255, but the largest pixel is {X.max():g}; "
                "say what they are with pixel_range",
                stacklevel=4,
            )
        return 0.0, 1.0 if unit else 255.0
    try:
        low, high = asked
    except (TypeError, ValueError):
        raise ValueError(f"pixel_range: expected (low, high), got {asked!r}") from None
    if not low < high:
        raise ValueError(f"pixel_range: expected (low, high), got {asked}")
    return float(low), float(high)
