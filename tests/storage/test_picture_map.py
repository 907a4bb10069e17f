"""map.safetensors: what is written is read, and damage is named."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.picture_map import ARRAYS, PictureMap, write_map
from fullmatch.storage.run_folder import RunFolder
from tests.picture_maps import make_map


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    write_map(folder.map, make_map())
    return folder


def test_round_trip(folder: RunFolder) -> None:
    odd = ("<a>\n", 'ä "猫".png', "\udc80 any bytes")
    written = make_map()
    written = replace(written, names=(*odd, *written.names[3:]))
    write_map(folder.map, written)
    read = folder.read_map()
    assert read is not None
    assert len(read) == 60
    for field in fields(PictureMap):
        one, other = getattr(written, field.name), getattr(read, field.name)
        assert np.array_equal(one, other), field.name
        if field.name in ARRAYS:
            assert other.dtype == ARRAYS[field.name]


def test_a_run_without_a_map(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_map() is None


def test_wrong_where_the_label_is_known(folder: RunFolder) -> None:
    picture_map = replace(
        make_map(4), predicted=np.array([0, 1, 1, 2]), labels=np.array([0, 1, 2, -1])
    )
    assert picture_map.wrong.tolist() == [False, False, True, False]


def test_no_pictures(folder: RunFolder) -> None:
    full = make_map()
    empty = {name: getattr(full, name)[:0] for name in (*ARRAYS, "names")}
    write_map(folder.map, replace(full, **empty))
    read = folder.read_map()
    assert read is not None
    assert len(read) == 0


def test_readable_to_whom_other_files_are(folder: RunFolder) -> None:
    (folder.path / "other").touch()
    assert folder.map.stat().st_mode == (folder.path / "other").stat().st_mode


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"points": np.zeros((59, 2))}, "points and names have different lengths"),
        ({"points": np.zeros((60, 3))}, "points and names have different lengths"),
        ({"labels": np.zeros(61)}, "labels and names have different lengths"),
        ({"points": np.full((60, 2), np.nan)}, "points are not finite"),
        ({"confidence": np.full(60, 1.5)}, "confidences are not between 0 and 1"),
        ({"confidence": np.full(60, np.nan)}, "confidences are not between 0 and 1"),
        ({"predicted": np.full(60, 3)}, "predictions are not classes"),
        ({"predicted": np.full(60, -1)}, "predictions are not classes"),
        ({"labels": np.full(60, 3)}, "labels are not classes"),
        ({"labels": np.full(60, -2)}, "labels are not classes"),
        ({"parts": np.full(60, 9)}, "parts are not known"),
        ({"suspect": None}, "suspect is missing"),
    ],
)
def test_wrong_values(folder: RunFolder, change: dict[str, Any], reason: str) -> None:
    arrays = load_file(folder.map) | change
    facts = {"format": 1, "names": make_map().names, "classes": make_map().classes}
    save_file(
        {name: each for name, each in arrays.items() if each is not None},
        folder.map,
        metadata={"fullmatch": json.dumps(facts)},
    )
    with pytest.raises(DamagedFile, match=f"{reason}.*delete it: then the report has no map"):
        folder.read_map()


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "another version of fullmatch wrote it"),
        ({"fullmatch": "[]"}, "another version of fullmatch wrote it"),
        ({"fullmatch": '{"format": 99}'}, "another version of fullmatch wrote it"),
        ({"fullmatch": "{"}, "not JSON"),
        ({"fullmatch": '{"format": 1, "classes": []}'}, "names is missing"),
    ],
)
def test_other_metadata(folder: RunFolder, metadata: dict[str, str], reason: str) -> None:
    save_file(load_file(folder.map), folder.map, metadata=metadata)
    with pytest.raises(DamagedFile, match=reason):
        folder.read_map()


@pytest.mark.parametrize("size", [0, 5, 60, 1000])
def test_half_a_file(folder: RunFolder, size: int) -> None:
    folder.map.write_bytes(folder.map.read_bytes()[:size])
    with pytest.raises(DamagedFile, match=r"map\.safetensors is damaged \(.+\); delete it"):
        folder.read_map()


def test_needs_no_torch() -> None:
    code = "import sys, fullmatch.storage.picture_map\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
