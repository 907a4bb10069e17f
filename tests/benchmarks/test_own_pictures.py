"""The benchmark on folders of pictures: other labels per seed, and a table of what was reached."""

import json
from pathlib import Path

import pytest

from benchmarks import own_pictures
from tests.own_pictures import clean_folder

QUICK = ["--model", "wrn-10-1", "--steps", "2", "--set", "training.threads=1"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return clean_folder(tmp_path / "photos", labels=2, unlabeled=2, test=4, size=16)


def targets(folder: Path) -> list[Path]:
    """The pictures that are in a folder, as themselves or as links."""
    return sorted(path.resolve() for path in folder.rglob("*") if path.is_file())


def test_seed_0_keeps_the_labels(photos: Path, tmp_path: Path) -> None:
    own_pictures.link_folder(photos, 0, tmp_path / "links")
    for place in ("labeled", "unlabeled", "test"):
        assert targets(tmp_path / "links" / place) == targets(photos / place)


def test_other_seeds_exchange_labeled_and_test_pictures(photos: Path, tmp_path: Path) -> None:
    own_pictures.link_folder(photos, 1, tmp_path / "links")
    assert targets(tmp_path / "links") == targets(photos)
    assert targets(tmp_path / "links" / "unlabeled") == targets(photos / "unlabeled")
    assert targets(tmp_path / "links" / "labeled") != targets(photos / "labeled")
    for name in ("brick", "grass", "water"):
        labeled = targets(tmp_path / "links" / "labeled" / name)
        assert len(labeled) == 2
        assert {path.parent.name for path in labeled} == {name}


def test_measures_once_and_writes_the_table(photos: Path, tmp_path: Path) -> None:
    arguments = [str(photos), "--seeds", "0", "--results", str(tmp_path), "--", *QUICK]
    own_pictures.main(arguments)
    ledger = tmp_path / "own_pictures.jsonl"
    row = json.loads(ledger.read_text())
    assert (row["labels"], row["unlabeled"], row["test"]) == (6, 6, 12)
    assert row["accuracy"] - row["labels_only"] == pytest.approx(row["gain"])
    assert row["used"] == "as asked for"
    own_pictures.main(arguments)  # nothing is missing
    assert json.loads(ledger.read_text()) == row
    page = (tmp_path / "own_pictures.md").read_text()
    assert f"`fullmatch train photos {' '.join(QUICK)}`" in page
    assert "6 labeled, 6 unlabeled and 12 test pictures" in page


def test_mean_over_seeds() -> None:
    rows = [measurement(seed, accuracy) for seed, accuracy in ((0, 0.9), (1, 1.0))]
    page = own_pictures.render_page(rows)
    assert "| 0 | 80.0 | 90.0 (80.0 to 95.0) | +10.0 (-1.0 to +20.0) | tuned network | 60 |" in page
    assert "| mean | 80.0 ± 0.0 | 95.0 ± 7.1 | 15.0 ± 7.1 |  | 60 |" in page


def measurement(seed: int, accuracy: float) -> own_pictures.Measurement:
    return own_pictures.Measurement(
        folder="photos",
        seed=seed,
        options="",
        labels=4,
        unlabeled=4,
        test=8,
        accuracy=accuracy,
        interval=(0.8, 0.95),
        labels_only=0.8,
        gain=accuracy - 0.8,
        gain_interval=(-0.01, 0.2),
        used="tuned network",
        seconds=60,
        device="CPU",
    )
