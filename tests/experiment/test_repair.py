"""Resuming writes again what was damaged, from the newest checkpoint."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fullmatch.errors import UserError
from fullmatch.experiment.repair import find_unusable, prepare_repairs
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import resume, start
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import write_pets
from tests.small_runs import AWKWARD, TINY, finish, read_outputs


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def poison(path: Path) -> None:
    tensors = load_file(path)
    next(each for each in tensors.values() if each.is_floating_point()).view(-1)[0] = torch.nan
    save_file(tensors, path)


def set_value(path: Path, key: str, value: object) -> None:
    table = json.loads(path.read_text())
    path.write_text(json.dumps(table | {key: value}))


DAMAGE: dict[str, Callable[[RunFolder], object]] = {
    "empty result": lambda folder: os.truncate(folder.result, 0),
    "result without classes": lambda folder: set_value(folder.result, "classes", []),
    "result nested deeply": lambda folder: folder.result.write_text("[" * 100_000),
    "result with wrong types": lambda folder: set_value(folder.result, "teacher", [1]),
    "another seed in the result": lambda folder: set_value(folder.result, "seed", 5),
    "a pipe for a result": lambda folder: make_pipe(folder.result),
    "half the predictions": lambda folder: os.truncate(folder.predictions, 100),
    "NaN in predictions": lambda folder: poison(folder.predictions),
    "a pipe for predictions": lambda folder: make_pipe(folder.predictions),
    "lost predictions": lambda folder: folder.predictions.unlink(),
    "NaN in the model": lambda folder: poison(folder.model),
    "no model": lambda folder: folder.model.unlink(),
    "half the learned digests": lambda folder: os.truncate(folder.learned, 30),
    "learned digests of text": lambda folder: save_file({"x": torch.zeros(2)}, folder.learned),
    "half a manifest": lambda folder: os.truncate(folder.manifest, 10),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("repaired")
    settings = resolve(
        data=str(write_pets(place)), assignments=(*TINY, *AWKWARD, "model.name=wrn-10-1")
    )
    return finish(start(settings, RunFolder.planned("pets", place / "run"))).folder.path


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_written_again(damage: str, finished: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    DAMAGE[damage](folder)
    (note, *_) = prepare_repairs(folder)
    assert note.endswith(": writing it again")
    assert "\n" not in note
    assert not folder.finished
    finish(resume(folder))
    assert read_outputs(folder.path) == read_outputs(finished)
    assert load_file(folder.learned).keys() == load_file(finished / "learned.safetensors").keys()
    assert not find_unusable(folder)


def test_a_whole_run_is_left_alone(finished: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    assert prepare_repairs(folder) == []
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before


def test_a_run_killed_before_its_manifest_gets_one(finished: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    folder.manifest.unlink()
    assert prepare_repairs(folder) == []
    assert folder.manifest.read_bytes() == (finished / "manifest.json").read_bytes()


def test_nothing_is_touched_without_a_checkpoint(finished: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    shutil.rmtree(folder.checkpoints)
    os.truncate(folder.result, 10)
    before = sorted(folder.path.rglob("*"))
    with pytest.raises(UserError, match=r"damaged \(not JSON\); no checkpoint is left") as error:
        prepare_repairs(folder)
    assert "\n" not in str(error.value)
    assert sorted(folder.path.rglob("*")) == before


def test_the_damaged_file_is_kept(finished: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    folder.result.write_text("mine")
    prepare_repairs(folder)
    assert (folder.path / "result.json.damaged").read_text() == "mine"
