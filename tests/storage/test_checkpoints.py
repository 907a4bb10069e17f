"""Checkpoints: complete or not there, two kept, every changed byte noticed."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from fullmatch.storage import checkpoints
from fullmatch.storage.checkpoints import (
    CheckpointFacts,
    DamagedCheckpoint,
    complete_checkpoints,
    digest,
    load_checkpoint,
    newest_checkpoint,
    newest_first,
    save_checkpoint,
)

STATE = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7)}


def facts(step: int, seconds: float = 0.1) -> CheckpointFacts:
    return CheckpointFacts(
        step=step,
        config="ab",
        data="cd",
        metrics=("loss",),
        metrics_size=12,
        seconds=seconds,
        started="starts from a file",
        threads=1,
        versions={"torch": "2"},
    )


def test_round_trip(tmp_path: Path) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(12))
    checkpoint = load_checkpoint(place)
    assert all(torch.equal(checkpoint.tensors[name], STATE[name]) for name in STATE)
    assert checkpoint.facts == facts(12)
    assert sorted(path.name for path in place.iterdir()) == ["state.json", "state.safetensors"]


def test_two_are_kept(tmp_path: Path) -> None:
    for step in (0, 9, 10, 1000):
        save_checkpoint(tmp_path, STATE, facts(step))
    assert [place.name for place in newest_first(tmp_path)] == [
        "step-000001000",
        "step-000000010",
    ]


def test_leftovers_of_a_killed_process_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".step-000000099.123").mkdir(parents=True)
    assert complete_checkpoints(tmp_path) == []
    save_checkpoint(tmp_path, STATE, facts(1))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_failed_save_leaves_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, STATE, facts(1))

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, STATE, facts(2))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_every_byte_counts(tmp_path: Path) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(1))
    for name in ("state.safetensors", "state.json"):
        whole = (place / name).read_bytes()
        for at in range(len(whole)):
            if whole[at : at + 1].isspace():
                continue  # in a JSON file, only white space may change
            broken = bytearray(whole)
            broken[at] ^= 0x04
            (place / name).write_bytes(broken)
            with pytest.raises(DamagedCheckpoint):
                load_checkpoint(place)
        (place / name).write_bytes(whole)
    load_checkpoint(place)


def test_same_step_is_not_written_twice(tmp_path: Path) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(1, seconds=1.0))
    save_checkpoint(tmp_path, STATE, facts(1, seconds=2.0))
    assert load_checkpoint(place).facts.seconds == 1.0
    (place / "state.json").write_text("{}")
    save_checkpoint(tmp_path, STATE, facts(1, seconds=3.0))
    assert load_checkpoint(place).facts.seconds == 3.0


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) == (None, [])
    for step in (1, 2):
        place = save_checkpoint(tmp_path, STATE, facts(step))
    (place / "state.safetensors").write_bytes(b"")
    checkpoint, damaged = newest_checkpoint(tmp_path)
    assert checkpoint is not None
    assert checkpoint.facts.step == 1
    assert damaged == [
        "step-000000002 is damaged (unreadable: not a safetensors file): going back to the one "
        "before"
    ]
    (place / "state.safetensors").unlink()
    with pytest.raises(DamagedCheckpoint, match=r"^state\.safetensors: No such file or directory$"):
        load_checkpoint(place)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, "\x00"])
def test_facts_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(1))
    (place / "state.json").write_text(text)
    with pytest.raises(DamagedCheckpoint, match="unreadable: "):
        load_checkpoint(place)


@pytest.mark.parametrize(
    "wrong",
    [{"step": -1}, {"metrics_size": -1}, {"seconds": -1.0}, {"threads": 0}, {"threads": 10**6}],
    ids=str,
)
def test_facts_that_no_run_has(wrong: dict[str, int], tmp_path: Path) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(1))
    table = json.loads((place / "state.json").read_text()) | wrong
    del table["sha256"]
    table["sha256"] = digest(place / "state.safetensors", table)  # as by someone who means it
    (place / "state.json").write_text(json.dumps(table))
    (name,) = wrong
    with pytest.raises(DamagedCheckpoint, match=f"unreadable: {name} is "):
        load_checkpoint(place)


def test_what_was_saved_is_kept_whatever_else_is_there(tmp_path: Path) -> None:
    """A user's copies do not count, and damaged later checkpoints do not push it out."""
    names = ["step-000000700 copy", "step-000000800", "step-000000900", "step-backup"]
    for name in names:
        (tmp_path / name).mkdir()
    for step in (5, 6, 7):
        save_checkpoint(tmp_path, STATE, facts(step))
    saved = ["step-000000006", "step-000000007"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*saved, *names]
    checkpoint, _ = newest_checkpoint(tmp_path)
    assert checkpoint is not None
    assert checkpoint.facts.step == 7


def test_a_process_killed_before_removing_an_old_one(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, STATE, facts(step))
    shutil.copytree(tmp_path / "step-000000002", tmp_path / "step-000000001")
    save_checkpoint(tmp_path, STATE, facts(3))
    assert [place.name[-1] for place in newest_first(tmp_path)] == ["3", "2"]
