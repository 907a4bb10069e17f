"""A finished model on test images: its own, or others with the same classes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullmatch.errors import UserError
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.inference.evaluate import evaluate_run
from fullmatch.storage.run_folder import RunFolder
from tests.small_runs import TINY, finish


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    out = tmp_path_factory.mktemp("run") / "run"
    config = resolve(assignments=(*TINY, "training.steps=3"))
    return finish(start(config, RunFolder.planned("x", out))).folder


def write_npz(path: Path, *, classes: int = 10, side: int = 8, test: bool = True) -> str:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % classes
    images = rng.integers(0, 255, (40, side, side), np.uint8)
    arrays: dict[str, Any] = {"train_x": images, "train_y": labels}
    if test:
        arrays |= {"test_x": images[:20], "test_y": labels[:20]}
    np.savez(path, **arrays)
    return str(path)


def test_own_test_images_give_the_result_of_the_run(folder: RunFolder) -> None:
    evaluation = evaluate_run(folder)
    expected = folder.read_result().teacher
    assert expected is not None
    assert evaluation.scores.top1 == expected.top1
    assert evaluation.scores.confusion == expected.confusion
    assert evaluation.scores.ece == pytest.approx(expected.ece, abs=1e-6)
    assert evaluation.data == "digits"
    assert evaluation.classes == tuple("0123456789")
    assert evaluation.images == 500
    assert evaluation.notes == ()
    assert evaluation.interval == wilson_interval(expected.top1, 500)


def test_other_data(folder: RunFolder, tmp_path: Path) -> None:
    evaluation = evaluate_run(folder, write_npz(tmp_path / "other.npz"))
    assert evaluation.images == 20
    assert 0 <= evaluation.scores.top1 <= 1


def test_data_that_does_not_fit(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has classes 0, 1, 2, but the model knows 0, 1, 2, 3"):
        evaluate_run(folder, write_npz(tmp_path / "three.npz", classes=3))
    with pytest.raises(UserError, match=r"images of \(1, 9, 9\).*trained on \(1, 8, 8\)"):
        evaluate_run(folder, write_npz(tmp_path / "large.npz", side=9))
    with pytest.raises(UserError, match="no test images"):
        evaluate_run(folder, write_npz(tmp_path / "untested.npz", test=False))


def test_missing_pictures(folder: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(folder.path, tmp_path / "run")
    text = folder.config.read_text().replace('"digits"', f'"{tmp_path / "gone"}"')
    (tmp_path / "run" / "config.toml").write_text(text)
    with pytest.raises(UserError, match=r"gone, which .*run was trained on, is gone; put it back"):
        evaluate_run(RunFolder(tmp_path / "run"))
    assert evaluate_run(RunFolder(tmp_path / "run"), "digits").images == 500


def test_a_stopped_run_shows_how_to_resume(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = start(resolve(assignments=TINY), RunFolder.planned("x", out))
    with pytest.raises(UserError, match=f"is not finished; resume with: fullmatch resume {out}"):
        evaluate_run(run.folder)
