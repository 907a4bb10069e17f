"""Load a source from NumPy arrays, in memory or in an .npz file."""

from pathlib import Path
from typing import Any, Literal
from zipfile import is_zipfile

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fullmatch.data.dataset import Source, clean_class_name, measure_appearance, sort_classes
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError

Layout = Literal["auto", "NHWC", "NCHW"]
Array = NDArray[Any]

_TRAIN = ("train_x", "train_y")
_TEST = ("test_x", "test_y")
_NPZ_KEYS = {"x": "train_x", "y": "train_y", "x_test": "test_x", "y_test": "test_y"}
CHUNK = 4096  # images converted at a time, which bounds the memory for floats


class InvalidArrayError(ValueError):
    """An argument of `from_arrays` that cannot be used."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument, self.problem = argument, problem


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    classes: tuple[str, ...] | None = None,
    layout: Layout = "auto",
    flip: bool = True,
    benchmark: bool = False,
    name: str = "arrays",
) -> Source:
    """Build a source from images `x` and labels `y`; -1, NaN, None and '' mean unlabeled.

    Images are (N, H, W), (N, H, W, C) or (N, C, H, W), as bytes, integers in 0..255, or floats
    in 0..1 or 0..255 (floats that never exceed 1 count as the former). Labels are numbers or
    strings; `classes` names the classes of labels 0, 1, 2, ... A `benchmark` knows all labels and
    hides most of them; it needs a test part.
    """
    if (x_test is None) != (y_test is None):
        raise InvalidArrayError("x_test, y_test", "expected both or neither, got one of them")
    classes = None if classes is None else tuple(map(clean_class_name, classes))
    array = np.asarray(x)
    scale = _pixel_scale(array, "x")
    images = TensorStore(_to_bytes(array, scale, layout, "x"))
    names = _label_names(np.asarray(y), len(images), classes, "y")
    order = _class_order(names, classes)

    test, test_labels = None, None
    if x_test is not None and y_test is not None:
        test = _test_images(np.asarray(x_test), array, scale, layout, images.shape)
        test_labels = _test_labels(np.asarray(y_test), len(test), classes, order)
    return Source(
        name=name,
        images=images,
        labels=_encode(names, order),
        test=test,
        test_labels=test_labels,
        classes=order,
        appearance=measure_appearance(images, flip=flip),
        benchmark=benchmark,
    )


def from_npz(path: Path, *, classes: tuple[str, ...] | None = None) -> Source:
    """Load a source from train_x, train_y and, if present, test_x, test_y and classes."""
    if path.exists() and (not path.is_file() or not is_zipfile(path)):
        raise UserError(f"{path} is not an .npz file; write it with np.savez")
    try:
        arrays, file_classes = _read_npz(path)
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"{path} needs more memory than there is; save fewer images") from None
    except Exception as error:  # a damaged file makes NumPy raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path} is damaged ({reason}); save it again") from None
    try:
        classes = file_classes if classes is None else classes
        return from_arrays(*arrays, classes=classes, name=path.stem)
    except InvalidArrayError as error:
        raise UserError(f"{path}: {_NPZ_KEYS[error.argument]}: {error.problem}") from None


def _read_npz(path: Path) -> tuple[list[Array], tuple[str, ...] | None]:
    """Train and test arrays in the order of `from_arrays`, and the class names if present."""
    with np.load(path, allow_pickle=False) as file:
        names = set(file.files)
        pairs = [_TRAIN] if names.isdisjoint(_TEST) else [_TRAIN, _TEST]
        if missing := [key for pair in pairs for key in pair if key not in names]:
            raise UserError(
                f"{path} lacks {' and '.join(missing)} (it has "
                f"{', '.join(file.files) or 'nothing'}); save it with "
                "np.savez(path, train_x=..., train_y=..., test_x=..., test_y=...)"
            )
        try:
            arrays = [file[key] for pair in pairs for key in pair]
            classes = file["classes"] if "classes" in names else None
        except ValueError as error:  # an array of Python objects would have to be unpickled
            raise UserError(
                f"{path} cannot be read ({error}); save numbers or text, not Python objects"
            ) from None
        return arrays, None if classes is None else tuple(str(label) for label in classes)


def _pixel_scale(x: Array, argument: str) -> int:
    """The factor that brings the values to 0..255; raise an error for unsuitable arrays."""
    if x.ndim not in (3, 4) or 0 in x.shape:
        raise InvalidArrayError(
            argument,
            f"expected images of shape (N, H, W), (N, H, W, C) or (N, C, H, W), got {x.shape}",
        )
    if x.dtype == np.uint8:
        return 1
    if x.dtype == np.bool_:
        return 255
    if x.dtype.kind not in "iuf":
        raise InvalidArrayError(argument, f"expected numbers, got an array of {x.dtype}")
    low, high = x.min(), x.max()
    if not (low >= 0 and high <= 255):  # written so that NaN fails too
        raise InvalidArrayError(
            argument, f"expected pixels in 0..1 or 0..255, got values from {low} to {high}"
        )
    return 255 if x.dtype.kind == "f" and high <= 1 else 1


def _test_images(
    x_test: Array, x: Array, scale: int, layout: Layout, shape: tuple[int, int, int]
) -> TensorStore:
    """The test images, which must have the shape and the pixel range of the training images."""
    test_scale = _pixel_scale(x_test, "x_test")
    if x.dtype.kind == "f" and x_test.dtype.kind == "f":
        if test_scale < scale:
            raise InvalidArrayError(
                "x_test", "expected floats in 0..1 like the training images, got larger ones"
            )
        test_scale = scale
    test = TensorStore(_to_bytes(x_test, test_scale, layout, "x_test"))
    if test.shape != shape:
        raise InvalidArrayError(
            "x_test",
            f"expected images of shape {shape} like the training images, got {test.shape}",
        )
    return test


def _to_bytes(x: Array, scale: int, layout: Layout, argument: str) -> Tensor:
    """Images (N, C, H, W) as unsigned bytes."""
    if x.ndim == 3:
        x = x[:, :, :, None]
    elif layout == "NCHW" or (layout == "auto" and x.shape[3] not in (1, 3)):
        x = x.transpose(0, 2, 3, 1)
    count, height, width, channels = x.shape
    if channels not in (1, 3):
        raise InvalidArrayError(argument, f"expected 1 or 3 channels, got shape {x.shape}")
    out = np.empty((count, channels, height, width), np.uint8)
    for start in range(0, count, CHUNK):
        chunk = x[start : start + CHUNK].transpose(0, 3, 1, 2)
        if x.dtype.kind == "f":
            chunk = np.rint(chunk * scale)
        elif x.dtype == np.bool_:
            chunk = chunk * np.uint8(255)
        out[start : start + CHUNK] = chunk
    return torch.from_numpy(out)


def _label_names(
    y: Array, count: int, classes: tuple[str, ...] | None, argument: str
) -> NDArray[np.str_]:
    """The class name of each image, '' if it is unlabeled."""
    if y.shape != (count,):
        raise InvalidArrayError(argument, f"expected {count} labels, one per image, got {y.shape}")
    if y.dtype.kind not in "biuf":
        names = [_label_name(value) for value in y.tolist()]
        if classes and (unknown := sorted(set(names) - {"", *classes})):
            raise InvalidArrayError(argument, f"expected one of {classes}, got {unknown[0]!r}")
        return np.array(names)
    numbers = np.where(np.isnan(y), -1, y) if y.dtype.kind == "f" else y.astype(np.int64)
    invalid = (numbers < -1) | np.isinf(numbers) | (numbers != np.floor(numbers))
    if classes:
        invalid |= numbers >= len(classes)
    if invalid.any():
        valid = f"0..{len(classes) - 1}" if classes else "0, 1, 2, ..."
        raise InvalidArrayError(
            argument, f"expected classes {valid} or -1 for unlabeled, got {numbers[invalid][0]}"
        )
    codes, inverse = np.unique(numbers.astype(np.int64), return_inverse=True)
    unique_names = ["" if k < 0 else classes[k] if classes else str(k) for k in codes]
    return np.array(unique_names)[inverse]


def _label_name(value: object) -> str:
    if value is None or value == -1 or value != value:  # only NaN differs from itself
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    name = clean_class_name(str(value))
    return "" if name == "-1" else name


def _class_order(names: NDArray[np.str_], classes: tuple[str, ...] | None) -> tuple[str, ...]:
    """The given classes, or those of the labels; every class needs a label."""
    used = sort_classes(names[names != ""].tolist())
    if len(used) < 2:
        raise InvalidArrayError("y", f"expected labels of at least 2 classes, got {len(used)}")
    order = used if classes is None else classes
    if unused := [label for label in order if label not in used]:
        raise InvalidArrayError(
            "y", f"expected a label for every class, got none for {unused[0]!r}"
        )
    return order


def _test_labels(
    y_test: Array, count: int, classes: tuple[str, ...] | None, order: tuple[str, ...]
) -> Tensor:
    names = _label_names(y_test, count, classes, "y_test")
    if unknown := sorted(set(names.tolist()) - set(order)):
        raise InvalidArrayError("y_test", f"expected only classes that y has, got {unknown[0]!r}")
    return _encode(names, order)


def _encode(names: NDArray[np.str_], order: tuple[str, ...]) -> Tensor:
    unique_names, inverse = np.unique(names, return_inverse=True)
    codes = np.array([order.index(name) if name else -1 for name in unique_names.tolist()])
    return torch.from_numpy(codes[inverse].astype(np.int64))
