"""What people hand to the estimator: pictures of any layout, labels of any kind, or paths."""

import math
import os
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

Array = NDArray[Any]
DARK = 32  # of 255: pictures without a lighter pixel are more likely of another range


def check_options(
    *, algorithm: Any, model: Any, weights: Any, flip: Any, image_size: Any, **others: Any
) -> None:
    """The estimator's options that no setting checks."""
    if not isinstance(algorithm, str):
        raise ValueError(
            f"algorithm: expected a name that fullmatch list algorithms shows, got {algorithm!r}"
        )
    if model is None and weights is not None:
        raise ValueError("weights: got a file without the model that it belongs to")
    if not isinstance(flip, bool | np.bool_):
        raise ValueError(f"flip: expected True or False, got {flip!r}")
    if image_size is not None and not (isinstance(image_size, Integral) and int(image_size) >= 1):
        raise ValueError(f"image_size: expected a whole number of 1 or more, got {image_size!r}")


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
    if found.dtype.kind in "US" and isinstance(y, list | tuple):
        found = np.array(y, dtype=object)  # else NumPy makes words of the numbers among them
    if len(found) != count:
        raise ValueError(f"y: expected {count} labels, one per picture, got {len(found)}")
    if found.dtype.kind in "biuf":
        known = ~np.isnan(found) & (found != -1) if found.dtype.kind == "f" else found != -1
    else:
        known = np.array([is_label(value) for value in found.tolist()], bool)
        kinds = {isinstance(label, str) for label in found[known].tolist()}
        if len(kinds) > 1:
            raise ValueError("y: expected labels of one kind, got numbers among words")
        labels = np.array(found[known].tolist())  # of a kind of their own, without what is unknown
        found = np.zeros(count, labels.dtype)
        found[known] = labels
    if known.any():
        check_classification_targets(found[known])
    return found, known


def is_label(value: Any) -> bool:
    """Whether it is none of the ways to say that there is no label."""
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return False
    # NumPy makes the word "-1" of a -1 among words; NaN alone differs from itself.
    return value not in ("", -1, "-1") and value == value


def are_paths(X: Any) -> bool:
    """Whether these are files' paths rather than pixels."""
    if not isinstance(X, list | tuple):
        if getattr(X, "ndim", 0) != 1:  # of an array, or a column of a table
            return False
        X = np.asarray(X).tolist()
    return len(X) > 0 and all(isinstance(x, str | os.PathLike) for x in X)


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
        if not unit and 0 < X.max() < DARK:
            warnings.warn(
                f"X: black is taken as 0 and white as 255, but the largest pixel is {X.max():g}; "
                "say what they are with pixel_range",
                stacklevel=4,
            )
        return 0.0, 1.0 if unit else 255.0
    try:
        low, high = map(float, asked)
    except (TypeError, ValueError):
        low = high = 0.0
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"pixel_range: expected (low, high), got {asked!r}")
    return low, high


def below_zero(asked: tuple[float, float] | None) -> bool:
    """Whether pixels may be negative; what is no range, `pixel_range` will say."""
    try:
        return asked is not None and pixel_range(np.empty(0), asked)[0] < 0
    except ValueError:
        return False
