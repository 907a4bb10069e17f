"""Damaged, foreign or changed files are passed over or refused in one line, never used."""

import json
import os
import pickle
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import resume
from fullmatch.storage.checkpoints import (
    FACTS,
    FORMAT,
    TENSORS,
    complete_checkpoints,
    digest,
    load_checkpoint,
    save_checkpoint,
)
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.trainer import Record
from tests.small_runs import begin, config, digits, finish, read_outputs, resume_run

DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda place: os.truncate(place / TENSORS, 1000),
    "zero length": lambda place: os.truncate(place / TENSORS, 0),
    "bit flipped": lambda place: flip(place / TENSORS, -1),
    "header flipped": lambda place: flip(place / TENSORS, 20),
    "facts changed": lambda place: swap(place / FACTS, '"step": 8', '"step": 7'),
    "facts cut": lambda place: os.truncate(place / FACTS, 30),
    "no facts": lambda place: (place / FACTS).unlink(),
    "no tensors": lambda place: (place / TENSORS).unlink(),
    "not an object": lambda place: (place / FACTS).write_text("[]"),
    "huge header": lambda place: (place / TENSORS).write_bytes(b"\xff" * 16),
}


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    finish(begin(config(), out))
    return out


@pytest.fixture
def unfinished(finished: Path, tmp_path: Path) -> Path:
    """A copy of a run that has everything but its result."""
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    (out / "result.json").unlink()
    return out


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_checkpoint_is_passed_over(damage: str, finished: Path, unfinished: Path) -> None:
    older, newest = complete_checkpoints(unfinished / "checkpoints")
    assert (older.name, newest.name) == ("step-000000005", "step-000000008")
    DAMAGE[damage](newest)
    resumed = resume_run(unfinished)
    damaged, at = resumed.recovery
    assert damaged.startswith("step-000000008 is damaged (")
    assert damaged.endswith("): going back to the one before")
    assert "\n" not in damaged
    assert at == "resumed at step 5"
    finish(resumed)
    assert read_outputs(unfinished) == read_outputs(finished)
    load_checkpoint(newest)  # it was written again


def test_no_usable_checkpoint_is_an_error(unfinished: Path) -> None:
    for place in complete_checkpoints(unfinished / "checkpoints"):
        os.truncate(place / TENSORS, 10)
    before = sorted(unfinished.rglob("*"))
    message = r"has no usable checkpoint \(step-000000008 is damaged .*; start again with: "
    with pytest.raises(UserError, match=message) as error:
        resume_run(unfinished)
    assert "\n" not in str(error.value)
    assert sorted(unfinished.rglob("*")) == before
    shutil.rmtree(unfinished / "checkpoints")
    with pytest.raises(UserError, match=r"no usable checkpoint \(all are missing\)"):
        resume_run(unfinished)  # never a silent fresh start


def test_foreign_checkpoint_is_refused(unfinished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    finish(begin(config("flexmatch"), other))
    for place in complete_checkpoints(unfinished / "checkpoints"):
        shutil.rmtree(place)
        shutil.copytree(other / "checkpoints" / place.name, place)
    with pytest.raises(UserError, match=r"config\.toml has changed since the checkpoint of step 8"):
        resume_run(unfinished)


def test_checkpoint_of_another_network_is_refused(unfinished: Path) -> None:
    place = complete_checkpoints(unfinished / "checkpoints")[-1]
    tensors, facts = load_checkpoint(place)
    del tensors["student.head.bias"]
    shutil.rmtree(place)
    save_checkpoint(place.parent, tensors, facts)
    with pytest.raises(UserError, match=r"does not belong to .*student\.head\.bias"):
        resume_run(unfinished)


def test_checkpoint_of_another_version_is_passed_over(unfinished: Path) -> None:
    for place in complete_checkpoints(unfinished / "checkpoints"):
        table = json.loads((place / FACTS).read_text()) | {"format": FORMAT + 1}
        del table["sha256"]
        table["sha256"] = digest(place / TENSORS, table)
        (place / FACTS).write_text(json.dumps(table))
    with pytest.raises(UserError, match="another version of fullmatch saved it"):
        resume_run(unfinished)


def test_pickles_are_never_opened(unfinished: Path) -> None:
    """A checkpoint that would run code when unpickled is only a damaged one."""
    bomb = pickle.dumps(type("Bomb", (), {"__reduce__": lambda self: (os.abort, ())})())
    for place in complete_checkpoints(unfinished / "checkpoints"):
        (place / TENSORS).write_bytes(bomb)
    with pytest.raises(UserError, match="no usable checkpoint"):
        resume_run(unfinished)


@pytest.mark.parametrize(
    ("old", "new"),
    [("seed = 0", "seed = 1"), ("threshold = 0.95", "threshold = 0.9"), ("batch = 6", "batch = 5")],
)
def test_changed_config_is_refused(old: str, new: str, unfinished: Path) -> None:
    swap(unfinished / "config.toml", old, new)
    before = (unfinished / "metrics.jsonl").read_bytes()
    with pytest.raises(
        UserError, match=r"config\.toml has changed since .*; restore the old settings, or"
    ):
        resume_run(unfinished)
    assert (unfinished / "metrics.jsonl").read_bytes() == before


def test_changed_data_is_refused(unfinished: Path) -> None:
    source = digits()
    labels = source.labels.clone()
    labels[-1] = (labels[-1] + 1) % 10
    with pytest.raises(UserError, match="pictures or labels of digits have changed since"):
        resume(RunFolder(unfinished), replace(source, labels=labels))


def test_lost_split_is_drawn_again(finished: Path, unfinished: Path) -> None:
    """Without it the run would see all labels of a benchmark."""
    (unfinished / "split.json").unlink()
    shutil.rmtree(complete_checkpoints(unfinished / "checkpoints")[-1])
    finish(resume_run(unfinished))
    assert read_outputs(unfinished) == read_outputs(finished)


def for_each_record(run: Run, action: Callable[[Record], None]) -> None:
    for record in run.records():
        action(record)


def test_full_disk_stops_cleanly(tmp_path: Path) -> None:
    """No file may grow beyond a limit, as on a full disk; then there is space again."""
    straight, out = tmp_path / "straight", tmp_path / "my run"
    finish(begin(config(), straight))
    run = begin(config(), out)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_disk(record: Record) -> None:
        if record.step == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))

    with pytest.raises(UserError) as error:
        for_each_record(run, fill_disk)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"cannot write to {out}: " in str(error.value)
    assert str(error.value).endswith(f"resume with: fullmatch resume '{out}'")
    assert [place.name for place in (out / "checkpoints").iterdir()] == ["step-000000000"]
    finish(resume_run(out))
    assert read_outputs(out) == read_outputs(straight)


def test_vanished_folder_stops_cleanly(tmp_path: Path) -> None:
    run = begin(config(), tmp_path / "run")
    with pytest.raises(UserError, match=r"cannot write to .*: No such file or directory"):
        for_each_record(run, lambda _: shutil.rmtree(tmp_path / "run"))
