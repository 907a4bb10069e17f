"""NumPy arrays, in memory or in an .npz file, as a source of pictures."""

import re
import zlib
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fullmatch.data.dataset import Source, class_order, measured_appearance
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError

Layout = Literal["auto", "NHWC", "NCHW"]
Array = NDArray[Any]

_TRAIN = ("train_x", "train_y")
_TEST = ("test_x", "test_y")
CHUNK = 4096  # images converted at a time, so that floats are never held twice


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    classes: tuple[str, ...] | None = None,
    layout: Layout = "auto",
    flip: bool = True,
    name: str = "arrays",
) -> Source:
    """A source from images `x` and labels `y`; -1, NaN, None and '' mean unlabeled.

    Images are (N, H, W), (N, H, W, C) or (N, C, H, W), of bytes, integers in 0..255, or floats
    in 0..1 or 0..255 (floats that never pass 1 count as the former). Labels are numbers or
    words; `classes` names the classes of labels 0, 1, 2, ...
    """
    if (x_test is None) != (y_test is None):
        raise ValueError("x_test, y_test: expected both or neither, got one of them")
    array = np.asarray(x)
    scale = _scale(array, "x")
    images = TensorStore(_pixels(array, scale, layout, "x"))
    words = _words(np.asarray(y), len(images), classes, "y")
    found = class_order(words[words != ""].tolist())
    if len(found) < 2:
        raise ValueError(f"y: expected labels of at least 2 classes, got {len(found)}")
    order = found if classes is None else classes
    if bare := [label for label in order if label not in found]:
        raise ValueError(f"y: expected a label for every class, got none for {bare[0]!r}")

    test, test_labels = None, None
    if x_test is not None and y_test is not None:
        floats = array.dtype.kind == "f"
        array = np.asarray(x_test)
        own_scale = _scale(array, "x_test")
        if not (floats and array.dtype.kind == "f"):
            scale = own_scale
        elif own_scale < scale:
            raise ValueError(
                "x_test: expected floats in 0..1 like the training images, got larger ones"
            )
        test = TensorStore(_pixels(array, scale, layout, "x_test"))
        if test.shape != images.shape:
            raise ValueError(
                f"x_test: expected images of shape {images.shape} like the training images, "
                f"got {test.shape}"
            )
        test_words = _words(np.asarray(y_test), len(test), classes, "y_test")
        if strays := sorted(set(test_words.tolist()) - set(order)):
            raise ValueError(f"y_test: expected only classes that y has, got {strays[0]!r}")
        test_labels = _codes(test_words, order)
    return Source(
        name=name,
        images=images,
        labels=_codes(words, order),
        test=test,
        test_labels=test_labels,
        classes=order,
        appearance=measured_appearance(images, flip=flip),
    )


def from_npz(path: Path, *, classes: tuple[str, ...] | None = None) -> Source:
    """A source from train_x, train_y and, where present, test_x, test_y and classes."""
    if not is_zipfile(path):
        raise UserError(f"{path} is no .npz file; write it with np.savez")
    try:
        with np.load(path, allow_pickle=False) as file:
            held = set(file.files)
            pairs = [_TRAIN] if held.isdisjoint(_TEST) else [_TRAIN, _TEST]
            if missing := [key for pair in pairs for key in pair if key not in held]:
                raise UserError(
                    f"{path} lacks {' and '.join(missing)} (it has "
                    f"{', '.join(file.files) or 'nothing'}); save it with "
                    "np.savez(path, train_x=..., train_y=..., test_x=..., test_y=...)"
                )
            arrays = [file[key] for pair in pairs for key in pair]
            if classes is None and "classes" in held:
                classes = tuple(str(label) for label in file["classes"])
        return from_arrays(*arrays, classes=classes, name=path.stem)
    except (OSError, BadZipFile, zlib.error) as error:
        raise UserError(f"{path} is damaged ({error}); save it again") from None
    except ValueError as error:
        text = str(error)
        if "allow_pickle" in text:
            text = "it holds Python objects; save plain numbers or text instead"
        text = re.sub("^([xy])(_test)?:", lambda m: f"{'test' if m[2] else 'train'}_{m[1]}:", text)
        raise UserError(f"{path}: {text}") from None


def _scale(x: Array, argument: str) -> int:
    """What turns the array's values into 0..255; complains where nothing sensible does."""
    if x.ndim not in (3, 4) or 0 in x.shape:
        raise ValueError(
            f"{argument}: expected images of shape (N, H, W), (N, H, W, C) or (N, C, H, W), "
            f"got {x.shape}"
        )
    if x.dtype == np.uint8:
        return 1
    if x.dtype == np.bool_:
        return 255
    if x.dtype.kind not in "iuf":
        raise ValueError(f"{argument}: expected numbers, got an array of {x.dtype}")
    low, high = x.min(), x.max()
    if not (low >= 0 and high <= 255):  # so written that NaN fails too
        raise ValueError(
            f"{argument}: expected pixels in 0..1 or 0..255, got values from {low} to {high}"
        )
    return 255 if x.dtype.kind == "f" and high <= 1 else 1


def _pixels(x: Array, scale: int, layout: Layout, argument: str) -> Tensor:
    if x.ndim == 3:
        x = x[:, :, :, None]
    elif layout == "NCHW" or (layout == "auto" and x.shape[3] not in (1, 3)):
        x = x.transpose(0, 2, 3, 1)
    count, height, width, channels = x.shape
    if channels not in (1, 3):
        raise ValueError(f"{argument}: expected 1 or 3 channels, got shape {x.shape}")
    out = np.empty((count, channels, height, width), np.uint8)
    for start in range(0, count, CHUNK):
        part = x[start : start + CHUNK].transpose(0, 3, 1, 2)
        if x.dtype.kind == "f":
            part = np.rint(part * scale)
        elif x.dtype == np.bool_:
            part = part * np.uint8(255)
        out[start : start + CHUNK] = part
    return torch.from_numpy(out)


def _words(
    y: Array, count: int, classes: tuple[str, ...] | None, argument: str
) -> NDArray[np.str_]:
    """Each image's class by name, '' where it is unlabeled."""
    if y.shape != (count,):
        raise ValueError(f"{argument}: expected {count} labels, one per image, got {y.shape}")
    if y.dtype.kind not in "biuf":
        values = [_word(value) for value in y.tolist()]
        if classes and (strays := sorted(set(values) - {"", *classes})):
            raise ValueError(f"{argument}: expected one of {classes}, got {strays[0]!r}")
        return np.array(values)
    numbers = np.where(np.isnan(y), -1, y) if y.dtype.kind == "f" else y.astype(np.int64)
    odd = (numbers < -1) | np.isinf(numbers) | (numbers != np.floor(numbers))
    if classes:
        odd |= numbers >= len(classes)
    if odd.any():
        limit = f"0..{len(classes) - 1}" if classes else "0, 1, 2, ..."
        raise ValueError(
            f"{argument}: expected classes {limit} or -1 for unlabeled, got {numbers[odd][0]}"
        )
    known, inverse = np.unique(numbers.astype(np.int64), return_inverse=True)
    names = ["" if k < 0 else classes[k] if classes else str(k) for k in known]
    return np.array(names)[inverse]


def _word(value: object) -> str:
    if value is None or value == -1 or value != value:  # NaN alone differs from itself
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    word = str(value).strip()
    return "" if word == "-1" else word


def _codes(words: NDArray[np.str_], order: tuple[str, ...]) -> Tensor:
    known, inverse = np.unique(words, return_inverse=True)
    codes = np.array([order.index(word) if word else -1 for word in known.tolist()])
    return torch.from_numpy(codes[inverse].astype(np.int64))
