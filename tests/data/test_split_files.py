"""Positions that a user chose become a split; files that cannot be used are one clear line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullmatch.data.dataset import Source
from fullmatch.data.sources.arrays import from_arrays
from fullmatch.data.split_files import read_positions, use_positions
from fullmatch.errors import UserError


def toy() -> Source:
    images = np.arange(8 * 16, dtype=np.uint8).reshape(8, 4, 4)
    return from_arrays(images, ["a", "b", "a", "b", "a", "b", "", ""], name="toy")


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_json_and_npz_are_the_same_split(tmp_path: Path) -> None:
    text = write(tmp_path / "split.json", {"labeled": [3, 0], "unlabeled": [7, 2, 6]})
    arrays = tmp_path / "split.npz"
    np.savez(arrays, labeled=[3, 0], unlabeled=[7, 2, 6])
    splits = []
    for path in (text, arrays):
        positions = read_positions(path)
        assert positions is not None
        splits.append(use_positions(path, positions, toy(), 5))
    assert splits[0] == splits[1]
    assert (splits[0].labeled, splits[0].targets, splits[0].unlabeled) == (
        (0, 3),
        (0, 1),
        (2, 6, 7),
    )
    splits[0].check("toy", toy().labels)


def test_all_images_are_unlabeled_unless_the_file_chooses(tmp_path: Path) -> None:
    path = write(tmp_path / "split.json", {"labeled": [0, 1]})
    positions = read_positions(path)
    assert positions is not None
    assert use_positions(path, positions, toy(), 0).unlabeled is None


def test_a_split_of_a_run_is_not_a_list_of_positions(tmp_path: Path) -> None:
    assert read_positions(write(tmp_path / "split.json", {"labeled": [0], "sha256": ""})) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([0, 1], "it has no list 'labeled'"),
        ({"unlabeled": [1]}, "it has no list 'labeled'"),
        ({"labeled": [0, 1], "unlabelled": [2]}, "expected labeled and unlabeled; did you mean"),
        ({"labeled": "all"}, "expected labeled to be a list of positions"),
        ({"labeled": []}, "expected labeled to be a list of positions"),
        ({"labeled": [0.5, 1]}, "expected labeled to be a list of positions"),
        ({"labeled": [[0], [1, 2]]}, "expected labeled to be a list of positions"),
        ({"labeled": [0, 1, 1]}, "labeled has 1, which is twice"),
        ({"labeled": [0, -1]}, "labeled has -1, which is negative"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_positions(write(tmp_path / "split.json", content))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the split"):
        read_positions(tmp_path / "missing.json")
    for name in ("split.json", "split.npz"):
        (tmp_path / name).write_text("{")
        with pytest.raises(UserError, match="is not a split file; write JSON"):
            read_positions(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"labeled": [0, 1], "unlabeled": [8]}, "unlabeled has the position 8, but toy has 8"),
        ({"labeled": [0, 1, 6]}, "the image 6 of toy has no label"),
        ({"labeled": [0, 2]}, "has no label of the class 'b'"),
    ],
)
def test_positions_that_do_not_fit_the_data(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "split.json", content)
    positions = read_positions(path)
    assert positions is not None
    with pytest.raises(UserError, match=message):
        use_positions(path, positions, toy(), 0)
