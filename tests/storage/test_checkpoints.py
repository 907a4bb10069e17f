"""Checkpoints: whole or not there, two kept, every changed byte noticed."""

from pathlib import Path

import pytest
import torch

from fullmatch.storage import checkpoints as checkpoint
from fullmatch.storage.checkpoints import Damaged

STATE = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7)}


def test_there_and_back(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, 12, STATE, {"metrics": ["loss"], "seconds": 0.1})
    tensors, facts = checkpoint.load(place)
    assert all(torch.equal(tensors[name], STATE[name]) for name in STATE)
    assert facts == {"format": 1, "step": 12, "metrics": ["loss"], "seconds": 0.1}
    assert sorted(path.name for path in place.iterdir()) == ["state.json", "state.safetensors"]


def test_two_are_kept(tmp_path: Path) -> None:
    for step in (0, 9, 10, 1000):
        checkpoint.save(tmp_path, step, STATE, {})
    assert [place.name for place in checkpoint.newest_first(tmp_path)] == [
        "step-000001000",
        "step-000000010",
    ]


def test_leftovers_of_a_kill_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / ".step-000000099.123").mkdir(parents=True)
    assert checkpoint.whole(tmp_path) == []
    checkpoint.save(tmp_path, 1, STATE, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_failed_save_leaves_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, 1, STATE, {})

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(tmp_path, 2, STATE, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_every_byte_counts(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, 1, STATE, {"seconds": 2.5})
    for name in ("state.safetensors", "state.json"):
        whole = (place / name).read_bytes()
        for at in range(len(whole)):
            if whole[at : at + 1].isspace():
                continue  # of a JSON file, white space alone may change
            broken = bytearray(whole)
            broken[at] ^= 0x04
            (place / name).write_bytes(broken)
            with pytest.raises(Damaged):
                checkpoint.load(place)
        (place / name).write_bytes(whole)
    checkpoint.load(place)


def test_same_step_is_not_written_twice(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, 1, STATE, {"by": "the first"})
    checkpoint.save(tmp_path, 1, STATE, {"by": "the second"})
    assert checkpoint.load(place)[1]["by"] == "the first"
    (place / "state.json").write_text("{}")
    checkpoint.save(tmp_path, 1, STATE, {"by": "the third"})
    assert checkpoint.load(place)[1]["by"] == "the third"
