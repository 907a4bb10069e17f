"""Arrays of every reasonable kind are accepted; errors name the argument."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fullmatch.data import from_arrays, load
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError

COLOR = np.random.default_rng(0).integers(0, 256, (6, 5, 7, 3), np.uint8)
GRAY = COLOR[..., 0]
Y = [0, 1, -1, 0, 1, -1]


def images(x: Any, **options: Any) -> torch.Tensor:
    store = from_arrays(x, Y, **options).images
    assert isinstance(store, TensorStore)
    return store.images


@pytest.mark.parametrize(
    "x",
    [
        COLOR,
        COLOR.transpose(0, 3, 1, 2),
        COLOR.astype(np.int64),
        COLOR.astype(np.float32),
        COLOR / 255,
        (COLOR / 255).astype(np.float32),
        COLOR[::1, :, ::-1][:, :, ::-1],
        COLOR.tolist(),
        torch.from_numpy(COLOR),
    ],
    ids=["uint8", "nchw", "int", "float255", "float01", "float32", "strided", "list", "tensor"],
)
def test_same_pixels_from_every_form(x: Any) -> None:
    assert images(x).equal(torch.from_numpy(COLOR).permute(0, 3, 1, 2))


@pytest.mark.parametrize("x", [GRAY, GRAY[..., None], GRAY[:, None], GRAY / 255])
def test_gray(x: Any) -> None:
    assert images(x).equal(torch.from_numpy(GRAY)[:, None])


def test_bool_is_black_and_white() -> None:
    assert images(GRAY > 99).unique().tolist() == [0, 255]


def test_layout_can_be_given_if_it_is_ambiguous() -> None:
    x = COLOR[:, :3, :3]
    assert images(x).equal(images(x, layout="NHWC"))
    assert images(x, layout="NCHW").equal(torch.from_numpy(x.copy()))


def test_input_is_neither_changed_nor_shared() -> None:
    x = COLOR.transpose(0, 3, 1, 2).copy()
    images(x).zero_()
    assert (x == COLOR.transpose(0, 3, 1, 2)).all()


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (Y, [0, 1, -1, 0, 1, -1], ("0", "1")),
        ([7.0, 3.0, np.nan, 7.0, 3.0, -1.0], [1, 0, -1, 1, 0, -1], ("3", "7")),
        ([10, 9, 9, 10, -1, -1], [1, 0, 0, 1, -1, -1], ("9", "10")),
        (["cat", "dog", "", "cat", "dog", "-1"], [0, 1, -1, 0, 1, -1], ("cat", "dog")),
        (
            np.array(["dog", "cat", None, -1, float("nan"), "Äffchen"], dtype=object),
            [1, 0, -1, -1, -1, 2],
            ("cat", "dog", "Äffchen"),
        ),
        (np.array([1, 2.0, None, 1, 2, -1], dtype=object), [0, 1, -1, 0, 1, -1], ("1", "2")),
        ([0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1], ("0", "1")),
        (np.array([True, False] * 3), [1, 0] * 3, ("0", "1")),
    ],
)
def test_labels(y: Any, codes: list[int], classes: tuple[str, ...]) -> None:
    source = from_arrays(COLOR, y)
    assert source.labels.tolist() == codes
    assert source.labels.dtype == torch.int64
    assert source.classes == classes
    assert not source.benchmark


def test_names_and_test_set() -> None:
    source = from_arrays(COLOR, Y, COLOR[:2], [1, 0], classes=("cat", "dog"), flip=False)
    assert source.classes == ("cat", "dog")
    assert not source.appearance.flip
    assert source.test is not None
    assert source.test_labels is not None
    assert len(source.test) == 2
    assert source.test_labels.tolist() == [1, 0]
    by_word = from_arrays(COLOR, ["b", "a"] * 3, COLOR[:2], ["a", "b"], classes=("b", "a"))
    assert by_word.test_labels is not None
    assert by_word.test_labels.tolist() == [1, 0]


def test_dark_test_images_keep_the_scale_of_the_training_images() -> None:
    source = from_arrays(COLOR.astype(float), Y, np.ones((1, 5, 7, 3)), [0])
    assert source.test is not None
    assert source.test.read(torch.tensor([0])).max() == 1


@pytest.mark.parametrize(("x", "x_test"), [(COLOR, COLOR / 255), (COLOR / 255, COLOR)])
def test_bytes_and_floats_can_be_mixed(x: Any, x_test: Any) -> None:
    source = from_arrays(x, Y, x_test, [0, 1] * 3)
    assert source.test is not None
    everything = torch.arange(6)
    assert source.test.read(everything).equal(source.images.read(everything))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((COLOR[:, 0, 0], Y), "x: expected images of shape"),
        ((COLOR[:0], []), "x: expected images of shape"),
        ((np.zeros((6, 5, 7, 4), np.uint8), Y), "x: expected 1 or 3 channels"),
        ((COLOR / 255 - 0.1, Y), "x: expected pixels"),
        ((COLOR.astype(int) + 1, Y), "x: expected pixels"),
        ((np.where(COLOR > 250, np.nan, COLOR), Y), "x: expected pixels"),
        ((np.where(COLOR > 250, np.inf, COLOR), Y), "x: expected pixels"),
        ((COLOR.astype(str), Y), "x: expected numbers"),
        ((COLOR, Y[:-1]), "y: expected 6 labels"),
        ((COLOR, np.array(Y)[:, None]), "y: expected 6 labels"),
        ((COLOR, [-1] * 6), "at least 2 classes, got 0"),
        ((COLOR, [1] * 6), "at least 2 classes, got 1"),
        ((COLOR, [0.5, *Y[1:]]), "y: expected classes .* got 0.5"),
        ((COLOR, [np.inf, *Y[1:]]), "y: expected classes .* got inf"),
        ((COLOR, [-2, *Y[1:]]), "y: expected classes .* got -2"),
        ((COLOR, Y, COLOR), "x_test, y_test"),
        ((COLOR, Y, COLOR[:1], [2]), "y_test: expected only classes that y has, got '2'"),
        ((COLOR, Y, COLOR[:1], [-1]), "y_test: expected only classes that y has, got ''"),
        ((COLOR, Y, COLOR[:1, :4], [0]), "x_test: expected images of shape"),
        ((COLOR / 255, Y, COLOR / 1.0, Y), "x_test: expected floats in 0..1"),
    ],
)
def test_rejected(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_arrays(*arguments)


def test_class_names_must_match_the_labels() -> None:
    with pytest.raises(ValueError, match=r"y: expected classes 0\.\.0"):
        from_arrays(COLOR, Y, classes=("cat",))
    with pytest.raises(ValueError, match="got none for 'cow'"):
        from_arrays(COLOR, Y, classes=("cat", "dog", "cow"))
    with pytest.raises(ValueError, match="y: expected one of"):
        from_arrays(COLOR, ["cat", "dgo"] * 3, classes=("cat", "dog"))


def test_npz_file(tmp_path: Path) -> None:
    path = tmp_path / "my pets.npz"
    np.savez(path, train_x=COLOR, train_y=Y, test_x=COLOR, test_y=[0, 1] * 3, classes=["a", "b"])
    source = load(str(path))
    assert source.name == "my pets"
    assert source.classes == ("a", "b")
    assert source.labels.tolist() == Y
    assert source.test is not None
    assert len(source.test) == 6


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": COLOR}, "lacks train_x and train_y .it has x."),
        ({"train_x": COLOR, "train_y": Y, "test_x": COLOR}, "lacks test_y"),
        ({"train_x": COLOR, "train_y": np.array(["a", None] * 3, object)}, "Python objects"),
        ({"train_x": COLOR[0, 0], "train_y": Y}, "train_x: expected images of shape"),
        ({"train_x": COLOR, "train_y": [1] * 6}, "train_y: expected labels of at least 2"),
        (
            {"train_x": COLOR, "train_y": Y, "test_x": COLOR, "test_y": [9] * 6},
            "test_y: expected only classes",
        ),
    ],
)
def test_bad_npz_file(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match=message) as caught:
        load(str(tmp_path / "bad.npz"))
    assert "\n" not in str(caught.value)


def test_damaged_npz_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"not an archive")
    with pytest.raises(UserError, match=r"not an \.npz file"):
        load(str(path))
    np.savez(path, train_x=COLOR, train_y=Y)
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        load(str(path))


def test_size_is_rejected_for_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", train_x=COLOR, train_y=Y)
    with pytest.raises(UserError, match="leave the size out"):
        load(str(tmp_path / "a.npz"), size=32)
