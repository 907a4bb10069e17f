"""Pictures of every layout and labels of every kind are understood."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from fullmatch.estimator.inputs import (
    InputKind,
    allows_negative_pixels,
    are_paths,
    detect_kind,
    parse_labels,
    resolve_pixel_range,
    to_bytes,
    to_channels_first,
)

ONE = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)  # two of three channels, 4 by 5


def test_layouts_agree() -> None:
    assert (to_channels_first(ONE, None) == ONE).all()
    assert (to_channels_first(ONE.transpose(0, 2, 3, 1), None) == ONE).all()
    assert (to_channels_first(ONE.reshape(2, -1), (3, 4, 5)) == ONE).all()
    assert (to_channels_first(ONE.reshape(2, -1), (3, 4, -1)) == ONE).all()
    assert (to_channels_first(ONE[:, 0], None) == ONE[:, :1]).all()
    assert to_channels_first(np.zeros((7, 64)), (8, 8)).shape == (7, 1, 8, 8)
    assert to_channels_first(np.zeros((7, 64)), (1, -1)).shape == (7, 1, 1, 64)


@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((2, 65), (8, 8), r"image_shape: \(8, 8\) does not hold 65 pixels"),
        ((2, 5, 6, 7), None, r"of 1 or 3 channels, got \(2, 5, 6, 7\)"),
        ((2, 1, 3, 4, 5), None, r"got \(2, 1, 3, 4, 5\)"),
    ],
)
def test_shapes_that_are_not_pictures(
    shape: tuple[int, ...], image_shape: tuple[int, ...] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_channels_first(np.zeros(shape), image_shape)


@pytest.mark.parametrize(
    ("pixels", "requested", "expected"),
    [
        (np.array([0, 128, 255], np.uint8), None, [0, 128, 255]),
        (np.array([0.0, 0.5, 1.0]), None, [0, 128, 255]),
        (np.array([0.0, 0.5, 200.0], np.float32), None, [0, 0, 200]),
        (np.array([False, True]), None, [0, 255]),
        (np.array([0, 8, 16]), (0, 16), [0, 128, 255]),
        (np.array([-1.0, 0.0, 1.0]), (-1, 1), [0, 128, 255]),
        (np.array([0, 65535], np.uint16), (0, 65535), [0, 255]),
    ],
)
def test_ranges(
    pixels: np.ndarray, requested: tuple[float, float] | None, expected: list[int]
) -> None:
    result = to_bytes(pixels, *resolve_pixel_range(pixels, requested))
    assert result.dtype == np.uint8
    assert result.tolist() == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1, 256])
def test_pixels_out_of_range(bad: float) -> None:
    pixels = np.array([0.0, bad, 200.0])
    with pytest.raises(ValueError, match=r"X: expected pixels from 0 to 255, got .*pixel_range"):
        to_bytes(pixels, 0, 255)


def test_reversed_range() -> None:
    with pytest.raises(ValueError, match=r"pixel_range: expected \(low, high\), got \(1, 0\)"):
        resolve_pixel_range(np.zeros(1), (1, 0))


@pytest.mark.parametrize(
    ("y", "known"),
    [
        ([0, 1, -1], [True, True, False]),
        ([0.0, np.nan, 1.0, -1.0], [True, False, True, False]),
        (["cat", "", "dog", "-1"], [True, False, True, False]),
        (np.array(["cat", None, -1, "dog", np.nan], object), [True, False, False, True, False]),
        ([-1, "cat", "dog"], [False, True, True]),
        (pd.Series(["cat", pd.NA, "dog"], dtype="string"), [True, False, True]),
        ([-1, -1], [False, False]),
        ([True, False], [True, True]),
    ],
)
def test_what_counts_as_unlabeled(y: list[object], known: list[bool]) -> None:
    labels, mask = parse_labels(y, len(known))  # type: ignore[arg-type]
    assert mask.tolist() == known
    assert len(labels) == len(known)


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA, -1])
@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], ["cat", "dog"]])
def test_labels_keep_their_type_beside_missing_ones(labels: list[object], missing: object) -> None:
    for y in ([*labels, missing], np.array([*labels, missing], object)):
        parsed, known = parse_labels(y, 3)  # type: ignore[arg-type]
        assert known.tolist() == [True, True, False]
        assert parsed[known].tolist() == labels
    assert type(parsed[known].tolist()[0]) is type(labels[0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5, 1.5, -1], "continuous"),
        (["cat", 3, "dog"], "numbers and strings"),
        ([0, 1], "y: expected 3 labels, one per sample, got 2"),
        ([[0, 1], [1, 0], [1, 1]], r"should be a 1d array"),
        (np.array(["cat", 3, "dog"], object), "numbers and strings"),
    ],
)
def test_wrong_labels(y: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_labels(y, 3)  # type: ignore[arg-type]


def test_paths_and_pixels() -> None:
    assert are_paths(["a.png", Path("b.png")])
    assert are_paths(np.array(["a.png"]))
    assert are_paths(pd.Series(["a.png"]))
    assert are_paths(pd.DataFrame({"p": ["a.png"]})["p"])
    assert are_paths(pd.Series(["a.png"], dtype="string"))
    assert not are_paths(pd.Series([1.0]))
    assert not are_paths([[1, 2], [3, 4]])
    assert not are_paths(np.zeros(3))
    assert not are_paths([])


@pytest.mark.parametrize(
    ("X", "image_shape", "kind"),
    [
        (["a.png", "b.png"], None, InputKind.PATHS),
        (["a.png", "b.png"], (8, 8), InputKind.PATHS),
        (np.zeros((5, 64)), None, InputKind.FEATURES),
        ([[1.0, 2.0], [3.0, 4.0]], None, InputKind.FEATURES),
        (pd.DataFrame({"a": [1.0], "b": [2.0]}), None, InputKind.FEATURES),
        (np.zeros((5, 64)), (8, 8), InputKind.PICTURES),
        (np.zeros((5, 8, 8)), None, InputKind.PICTURES),
    ],
)
def test_rows_are_features_unless_they_have_an_image_shape(
    X: Any, image_shape: tuple[int, ...] | None, kind: InputKind
) -> None:
    assert detect_kind(X, image_shape) is kind


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([Path("a.png"), np.zeros((8, 8))], ValueError, "paths of pictures or arrays, got both"),
        ([[1.0, 2.0], [3.0]], ValueError, "pictures of one size, or rows of one length, got"),
        (csr_matrix(np.eye(3)), TypeError, "sparse rows are not supported.*TruncatedSVD"),
    ],
)
def test_inputs_of_no_kind(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        detect_kind(X, None)


@pytest.mark.parametrize(("shape", "message"), [(8, "got 8"), ((8.0, 8.0), "got .8.0, 8.0.")])
def test_wrong_image_shape(shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"image_shape: expected integers .*{message}"):
        to_channels_first(np.zeros((2, 64)), shape)


@pytest.mark.parametrize("requested", [(16,), 16, (0, 1, 2), ("a", "b"), (None, 1), (0, np.inf)])
def test_wrong_pixel_range(requested: Any) -> None:
    with pytest.raises(ValueError, match=r"pixel_range: expected \(low, high\), got"):
        resolve_pixel_range(np.zeros((2, 8, 8)), requested)
    assert not allows_negative_pixels(requested)


def test_pixels_of_another_range_are_reported() -> None:
    with pytest.warns(UserWarning, match="the largest pixel is 1.01; set pixel_range"):
        assert resolve_pixel_range(np.full((1, 8, 8), 1.01), None) == (0, 255)
    with pytest.warns(UserWarning, match="the largest pixel is 16; set pixel_range"):
        assert resolve_pixel_range(np.full((1, 8, 8), 16, np.uint8), None) == (0, 255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve_pixel_range(np.full((1, 8, 8), 16.0), (0, 16))
        resolve_pixel_range(np.full((1, 8, 8), 200), None)
        resolve_pixel_range(np.zeros((1, 8, 8), np.uint8), None)
