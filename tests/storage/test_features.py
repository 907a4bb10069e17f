"""features.safetensors: what is written is read again, and damage is one clear line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from fullmatch.storage.features import Part, PictureFeatures, read_features, write_features
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.run_folder import RunFolder
from tests.full_disk import full_disk
from tests.written_runs import write_run


def some_features() -> PictureFeatures:
    rows = np.random.default_rng(0).normal(size=(6, 5))
    return PictureFeatures(
        features=(rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32),
        parts=np.array([0, 1, 0, 1, 2, 2], np.uint8),
        labels=np.array([0, -1, 1, -1, 1, 0]),
        names=("labeled/ä b/1.png", "image 1", "2", "3", "4", "5"),
        classes=("ä b", "dog"),
        weights="timm:some 1234 96x160",
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    write_features(folder.features, some_features())
    return folder


def test_features_are_read_as_they_were_written(folder: RunFolder) -> None:
    written, read = some_features(), folder.read_features()
    assert read is not None
    assert len(read) == 6
    assert read.features.dtype == np.float32
    assert np.allclose(read.features, written.features, atol=1e-3)
    assert np.array_equal(read.parts, written.parts)
    assert np.array_equal(read.labels, written.labels)
    assert (read.names, read.classes, read.weights) == (
        written.names,
        written.classes,
        written.weights,
    )
    assert [read.where(part).tolist() for part in Part] == [[0, 2], [1, 3], [4, 5]]


def test_a_run_without_features(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_features() is None


@pytest.mark.parametrize("content", [b"", b"text", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_file_that_is_something_else(content: bytes, folder: RunFolder) -> None:
    folder.features.write_bytes(content)
    with pytest.raises(DamagedFile, match="delete it: it is not needed to predict") as error:
        folder.read_features()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", [9, 200, -1])
def test_a_file_that_was_cut_off(length: int, folder: RunFolder) -> None:
    folder.features.write_bytes(folder.features.read_bytes()[:length])
    with pytest.raises(DamagedFile):
        folder.read_features()


def rewrite(path: Path, facts: Any = None, **arrays: Any) -> None:
    """Replace some of the facts or arrays of a file; None removes one."""
    with safe_open(path, framework="numpy") as file:
        old = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(file.metadata()["fullmatch"])
    about = about | facts if isinstance(facts, dict) else about if facts is None else facts
    if isinstance(about, dict):
        about = {name: value for name, value in about.items() if value is not None}
    kept = {name: array for name, array in (old | arrays).items() if array is not None}
    save_file(kept, path, metadata={"fullmatch": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"facts": {"format": 99}}, "another version"),
        ({"facts": {"format": None}}, "another version"),
        ({"facts": {"names": None}}, "names is missing"),
        ({"facts": {"weights": None}}, "weights is missing"),
        ({"facts": {"names": ["a"]}}, "different lengths"),
        ({"facts": {"names": 3}}, "damaged"),
        ({"facts": [1, 2]}, "damaged"),
        ({"labels": np.zeros(5, np.int64)}, "different lengths"),
        ({"parts": None}, "parts"),
        ({"features": np.zeros(6, np.float16)}, "different lengths"),
        ({"features": np.full((6, 5), np.nan, np.float16)}, "not finite"),
        ({"labels": np.full(6, 2)}, "parts or labels"),
        ({"labels": np.full(6, -2)}, "parts or labels"),
        ({"parts": np.full(6, 7, np.uint8)}, "parts or labels"),
        ({"labels": np.zeros((6, 2), np.int64)}, "different lengths"),
    ],
)
def test_values_that_do_not_fit(change: dict[str, Any], reason: str, folder: RunFolder) -> None:
    rewrite(folder.features, **change)
    with pytest.raises(DamagedFile, match=reason) as error:
        folder.read_features()
    assert "\n" not in str(error.value)


def test_a_rewritten_file_is_read(folder: RunFolder) -> None:
    """The changes above fail for what they change, not for how."""
    rewrite(folder.features, facts={"weights": "others"})
    read = folder.read_features()
    assert read is not None
    assert read.weights == "others"


def test_a_full_disk_keeps_the_old_file(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    before = folder.features.read_bytes()
    with pytest.raises(Exception, match=r"large|I/O"), full_disk():
        write_features(folder.features, replace(some_features(), weights="new"))
    assert folder.features.read_bytes() == before
    assert read_features(folder.features).weights == some_features().weights


def test_features_of_another_run(tmp_path: Path) -> None:
    """They are about other classes than the result."""
    folder = RunFolder(write_run(tmp_path / "run"))
    write_features(folder.features, some_features())
    with pytest.raises(DamagedFile, match=r"about other classes than result\.json"):
        folder.read_features()
