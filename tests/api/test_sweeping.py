"""A sweep from Python: ordinary runs, a table, and nothing done twice."""

from pathlib import Path

import pytest

import fullmatch
from fullmatch.errors import UserError
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import write_pets
from tests.sweeps.small_sweeps import TINY

FIXED = dict(setting.split("=") for setting in TINY)


def test_a_grid_of_ordinary_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run() -> fullmatch.SweepTable:
        return fullmatch.sweep(
            "digits",
            FIXED | {"optimizer.rate": [0.01, 1e30]},
            labels=40,
            steps=6,
            score="test",
            progress=False,
        )

    table = run()
    assert [row.point.assignments for row in table.rows] == [
        ["optimizer.rate=0.01"],
        ["optimizer.rate=1e+30"],
    ]
    assert [row.diverged for row in table.rows] == [0, 1]
    assert table.folder.parent == Path("sweeps")
    single = fullmatch.load(table.folder / "runs" / "000-seed0")
    assert table.rows[0].mean == single.accuracy
    again = fullmatch.train(
        config=table.folder / "config.toml",
        settings=["optimizer.rate=0.01"],
        out="again",
        progress=False,
    )
    assert again.accuracy == single.accuracy  # what the table says can be repeated
    written = {path: path.stat().st_mtime_ns for path in table.folder.rglob("*.safetensors")}
    assert run() == table  # nothing is trained again
    assert fullmatch.sweep(out=table.folder, progress=False) == table
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_own_pictures_are_compared_by_held_out_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path)
    pretrained = {"model.name": "wrn-10-1", "model.body": "trained", "model.pretrained": False}
    settings = pretrained | {"training.batch": 4, "algorithm.threshold": [0.5]}
    with pytest.raises(UserError, match="--score test is for benchmarks"):
        fullmatch.sweep("pets", settings, steps=2, score="test", progress=False)
    assert not Path("sweeps").exists()
    table = fullmatch.sweep("pets", settings, steps=2, out="mine", progress=False)
    result = RunFolder(Path("mine/runs/000-seed0")).read_result()
    assert result.teacher is not None  # measured on the test pictures, which choose nothing
    assert {score.images for row in table.rows for score in row.scores.values()} == {6}
    assert not table.shows_test
    assert "test_accuracy" in table.to_csv()
    assert all(row.test is None for row in table.rows)


def test_too_few_labels_to_hold_some_out() -> None:
    with pytest.raises(UserError, match="10 labels of 10 classes are too few to hold some out"):
        fullmatch.sweep("digits", {"optimizer.rate": [0.1, 0.2]}, labels=10, progress=False)
