"""Parts of tables become a source: splits, classes and their order, unreadable pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fullmatch.data.sources.arrow_tables import read_table
from fullmatch.data.sources.table_parts import TablePart, choose_table_side, join_parts
from fullmatch.data.stores.encoded import EncodedStore
from fullmatch.errors import UserError
from tests.encoded_pictures import encode, hub_dataset, noise, write_parquet

PIXELS = noise(6)
FILES = [encode(pixels) for pixels in PIXELS]


def part(
    tmp_path: Path, split: str, labels: list[Any], files: list[Any] | None = None
) -> TablePart:
    path = tmp_path / f"{split or 'all'}.parquet"
    write_parquet(path, (files or FILES)[: len(labels)], labels)
    (read,) = read_table(path, split)
    return read


def test_splits_by_their_names(tmp_path: Path) -> None:
    table = join_parts(
        "toy",
        [
            part(tmp_path, "test", ["b", "a"]),
            part(tmp_path, "unlabelled", ["a", "a", "c"]),
            part(tmp_path, "train", ["b", "a", None]),
            part(tmp_path, "validation", ["a"]),
            part(tmp_path, "extra", ["a", "b"]),
        ],
    )
    assert table.classes == ("a", "b")
    assert table.labels.tolist() == [1, 0, -1, -1, -1, -1]
    assert table.test_labels.tolist() == [1, 0]
    assert table.notes == [
        "2 pictures of the split 'extra' left out: it is not train, unlabeled, test or validation",
        "the split 'validation' is not used: there is a test set",
    ]
    source = table.to_source(None)
    assert source.images.read(torch.arange(3))[:, 0].equal(torch.from_numpy(PIXELS[:3]))
    assert source.test is not None
    assert len(source.test) == 2


def test_validation_is_the_test_where_there_is_none(tmp_path: Path) -> None:
    train, validation = part(tmp_path, "train", ["b", "a"]), part(tmp_path, "val", ["a"])
    table = join_parts("toy", [train, validation])
    assert table.test_labels.tolist() == [0]
    assert table.notes == ["the split 'val' is used as the test set"]
    hidden = part(tmp_path, "test", [-1, -1])
    table = join_parts("toy", [train, hidden, validation])
    assert len(table.test) == 1
    assert table.notes[0] == "the test pictures have no labels: they are not used"


def test_the_order_of_classes(tmp_path: Path) -> None:
    hub_dataset(PIXELS[:3], [0, 2, 0], ["z", "unused", "a"]).to_parquet(str(tmp_path / "a.parquet"))
    typed = read_table(tmp_path / "a.parquet")
    assert join_parts("toy", typed).classes == ("z", "a")
    other = part(tmp_path, "", ["b10", "b9"])
    table = join_parts("toy", [*typed, other])
    assert table.classes == ("a", "b9", "b10", "z")
    assert table.labels.tolist() == [3, 0, 3, 2, 1]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": ["a", "a"]}, "toy has only the class 'a'; label pictures of at least 2"),
        ({"train": [None, -1]}, "toy has no labeled pictures"),
        ({"test": ["a", "b"]}, "no pictures to train on in toy"),
        ({"train": ["a", "b"], "test": ["c"]}, "have a class 'c' that no labeled picture has"),
        ({"train": ["a", "b"], "test": ["a", ""]}, r"test.parquet, row 1: a test picture needs a"),
    ],
)
def test_labels_that_are_missing(
    tmp_path: Path, splits: dict[str, list[Any]], message: str
) -> None:
    parts = [part(tmp_path, split, labels) for split, labels in splits.items()]
    with pytest.raises(UserError, match=message):
        join_parts("toy", parts)


def test_unknown_classes_may_be_in_the_test_alone(tmp_path: Path) -> None:
    parts = [part(tmp_path, "train", ["a", "b"]), part(tmp_path, "test", ["a", "c"])]
    assert join_parts("toy", parts, ["c"]).classes == ("a", "b", "c")


@pytest.mark.parametrize("max_bytes", [None, 10])
def test_unreadable_pictures(tmp_path: Path, max_bytes: int | None) -> None:
    files = [*FILES[:3], b"damaged", *FILES[4:]]
    table = join_parts("toy", [part(tmp_path, "", ["a", "b", "", "", "", "b"], files)])
    source = table.to_source(None, max_bytes=max_bytes)
    assert isinstance(source.images, EncodedStore) is (max_bytes is not None)
    assert source.labels.tolist() == [0, 1, -1, -1, 1]
    expected = torch.from_numpy(PIXELS[[0, 1, 2, 4, 5]])
    assert source.images.read(torch.arange(5))[:, 0].equal(expected)
    (note,) = source.notes
    assert "1 unreadable unlabeled picture left out (33%): " in note
    assert note.endswith("all.parquet, row 3")
    table = join_parts("toy", [part(tmp_path, "", ["a", "b", "a", "a"], files)])
    with pytest.raises(UserError, match=r"1 labeled picture cannot be read: .*all.parquet, row 3;"):
        table.to_source(None, max_bytes=max_bytes)


def test_no_unlabeled_pictures(tmp_path: Path) -> None:
    table = join_parts("toy", [part(tmp_path, "", ["a", "b"])])
    assert table.to_source(None).notes[0].startswith("no unlabeled pictures")


@pytest.mark.parametrize(
    ("sizes", "side"),
    [
        ([(28, 28)] * 3, 28),
        ([(28, 30)] * 3, 32),
        ([(28, 28), (30, 30)], 32),
        ([(300, 300)], 224),
        ([(4, 4)], 32),
        ([], 32),
    ],
)
def test_equal_squares_keep_their_size(sizes: list[tuple[int, int]], side: int) -> None:
    assert choose_table_side(sizes) == side


def test_another_size_and_color(tmp_path: Path) -> None:
    color = encode(np.zeros((9, 12, 3), np.uint8))
    table = join_parts("toy", [part(tmp_path, "", ["a", "b"], [FILES[0], color])])
    assert table.choose_form() == (32, 3)
    assert table.to_source(16).images.shape == (3, 16, 16)
