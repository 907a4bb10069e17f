"""The Fashion-MNIST benchmark: it writes pictures, runs the command and writes a table."""

import gzip
import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from benchmarks import fashion
from fullmatch import data
from fullmatch.data import DATASETS, TensorStore

FEW = ["--labels", "30", "--minutes", "1", "--unlabeled", "30", "--test", "20"]
QUICK = ["--model", "wrn-10-1", "--set", "training.steps=2", "--set", "training.threads=1"]


@pytest.fixture
def clothes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The four files, with a few random pictures of each class."""
    folder = tmp_path / "clothes"
    folder.mkdir()
    sums = []
    arrays = [*draw_pictures(70, seed=0), *draw_pictures(30, seed=1)]
    for (name, _), array in zip(DATASETS["fashion-mnist"].files, arrays, strict=True):
        header = struct.pack(f">HBB{array.ndim}i", 0, 8, array.ndim, *array.shape)
        content = header + array.tobytes()
        (folder / name).write_bytes(gzip.compress(content))
        sums.append((name, hashlib.md5(content).hexdigest()))
    here = replace(DATASETS["fashion-mnist"], files=tuple(sums), extra_folders=())
    monkeypatch.setitem(DATASETS, "fashion-mnist", here)
    return folder


def draw_pictures(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    labels = (np.arange(count) % 10).astype(np.uint8)
    noise = np.random.default_rng(seed).integers(0, 60, (count, 28, 28), np.uint8)
    return noise + 20 * labels[:, None, None], labels


def test_folder_of_pictures(clothes: Path, tmp_path: Path) -> None:
    source = fashion.load_fashion(clothes)
    split = data.draw_split(source.labels, 20, 0, 10, source.name)
    fashion.write_training_pictures(source, split, 30, tmp_path / "fashion")
    fashion.write_test_pictures(source, 20, tmp_path / "fashion")
    loaded = data.load(str(tmp_path / "fashion"), size=28)
    assert {"T-shirt", "Ankle boot"} < set(loaded.classes)
    assert len(loaded.classes) == 10
    assert np.bincount(loaded.labels[:20]).tolist() == [2] * 10
    assert loaded.labels[20:].tolist() == [-1] * 30
    assert loaded.test_labels is not None
    assert len(loaded.test_labels) == 20
    numbers = [int(path.stem) for path in (tmp_path / "fashion" / "unlabeled").iterdir()]
    assert len(set(numbers)) == 30
    assert not set(numbers) & set(split.labeled)
    assert isinstance(source.images, TensorStore)
    for path in (tmp_path / "fashion" / "labeled" / "Dress").iterdir():
        assert source.labels[int(path.stem)] == 3
        assert np.array_equal(np.asarray(Image.open(path)), source.images.images[int(path.stem), 0])


def test_measures_once_and_writes_the_table(
    clothes: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = [*FEW, "--source", str(clothes), "--results", str(tmp_path / "results")]
    fashion.main([*arguments, "--", *QUICK])
    ledger = tmp_path / "results" / "fashion.jsonl"
    with_test, without = map(json.loads, ledger.read_text().splitlines())
    assert with_test["measured"] == "test folder"
    assert without["measured"] == "held-out labels"
    for row in (with_test, without):
        assert row["labels"] == 30
        assert row["steps"] == 2
        assert row["network"] == "wrn-10-1"
        assert row["interval"][0] < row["accuracy"] < row["interval"][1]
        assert row["accuracy"] - row["labels_only"] == pytest.approx(row["gain"])
    assert 20 * without["truth"] == pytest.approx(round(20 * without["truth"]))

    before = ledger.read_text()
    capfd.readouterr()
    fashion.main([*arguments, "--", *QUICK])  # nothing is missing
    assert ledger.read_text() == before
    page = (tmp_path / "results" / "fashion.md").read_text()
    assert page.strip() == capfd.readouterr().out.strip()
    assert f"`fullmatch train fashion --minutes 1 {' '.join(QUICK)}`" in page
    assert page.count("| 30 | 0 | ") == 2


def test_table_without_measuring_needs_no_pictures(tmp_path: Path) -> None:
    row: dict[str, Any] = {"labels": 40, "seed": 0, "measured": "held-out labels", "minutes": 8.0}
    row |= {"options": "", "unlabeled": 6000, "test": 10_000, "device": "CPU", "steps": 1500}
    row |= {"accuracy": 0.7, "interval": [0.5, 0.8], "labels_only": 0.65, "gain": 0.05}
    row |= {"gain_interval": [-0.1, 0.2], "truth": 0.724, "network": "wrn-10-1", "seconds": 480}
    (tmp_path / "fashion.jsonl").write_text(json.dumps(row) + "\n")
    fashion.main(["--only-table", "--results", str(tmp_path), "--source", "nowhere"])
    assert (
        "| 40 | 0 | held-out labels | 70.0 (50.0 to 80.0) | 65.0 | +5.0 (-10.0 to +20.0) | 72.4 "
        "| wrn-10-1 | 1,500 | 480 |" in (tmp_path / "fashion.md").read_text()
    )


def test_missing_files(clothes: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"apt install dataset-fashion-mnist, or .* --source"):
        fashion.main(["--source", str(tmp_path), "--results", str(tmp_path / "results")])
