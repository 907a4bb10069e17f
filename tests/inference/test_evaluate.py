"""A finished model on test images: its own, or others with the same classes."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from fullmatch.errors import UserError
from fullmatch.evaluation.summary import wilson
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.inference.evaluate import evaluated
from fullmatch.storage.run_folder import RunFolder
from tests.small_runs import TINY, finish


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    out = tmp_path_factory.mktemp("run") / "run"
    chosen = resolve(assignments=(*TINY, "training.steps=3"))
    return finish(start(chosen, RunFolder.planned("x", out))).folder


def arrays(path: Path, *, classes: int = 10, side: int = 8, test: bool = True) -> Path:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % classes
    content = {"train_x": rng.integers(0, 255, (40, side, side), np.uint8), "train_y": labels}
    if test:
        content |= {"test_x": content["train_x"][:20], "test_y": labels[:20]}
    np.savez(path, **content)
    return path


def test_own_test_images_give_the_runs_own_result(folder: RunFolder) -> None:
    import json

    found = evaluated(folder)
    result = json.loads(folder.result.read_text())["teacher"]
    assert found["top1"] == result["last"]
    assert found["confusion"] == tuple(map(tuple, result["confusion"]))
    assert found["ece"] == pytest.approx(result["ece"], abs=1e-6)
    assert found["images"] == 500 and found["interval"] == wilson(found["top1"], 500)


def test_other_data(folder: RunFolder, tmp_path: Path) -> None:
    found = evaluated(folder, str(arrays(tmp_path / "other.npz")))
    assert found["images"] == 20 and 0 <= found["top1"] <= 1


def test_data_that_does_not_fit(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has classes 0, 1, 2, but the model knows 0, 1, 2, 3"):
        evaluated(folder, str(arrays(tmp_path / "three.npz", classes=3)))
    with pytest.raises(UserError, match=r"images of \(1, 9, 9\).*trained on \(1, 8, 8\)"):
        evaluated(folder, str(arrays(tmp_path / "large.npz", side=9)))
    with pytest.raises(UserError, match="no test images"):
        evaluated(folder, str(arrays(tmp_path / "untested.npz", test=False)))


def test_pictures_that_are_gone(folder: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(folder.path, tmp_path / "run")
    text = folder.config.read_text().replace('"digits"', f'"{tmp_path / "gone"}"')
    (tmp_path / "run" / "config.toml").write_text(text)
    with pytest.raises(UserError, match=r"gone, which .*run was trained on, is gone; put it back"):
        evaluated(RunFolder(tmp_path / "run"))
    assert evaluated(RunFolder(tmp_path / "run"), "digits")["images"] == 500


def test_a_stopped_run_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = start(resolve(assignments=TINY), RunFolder.planned("x", out))
    with pytest.raises(UserError, match=f"is not finished; go on with: fullmatch resume {out}"):
        evaluated(run.folder)
