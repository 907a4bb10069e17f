"""`fullmatch check`: words on the screen, a file beside, an exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App

from fullmatch.cli.check_text import counted, duration
from fullmatch.cli.commands.check import check
from fullmatch.errors import UserError
from fullmatch.experiment import planning
from tests.full_disk import full_disk
from tests.own_pictures import clean_folder, picture, save

Checked = Callable[..., str]


@pytest.fixture
def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Checked:
    """Runs the command in a folder beside the pictures, and gives back what it says."""
    monkeypatch.setattr(planning, "step_seconds", lambda config, source: 0.05)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app = App(result_action="return_value")
    app.command(check)

    def run(*words: str) -> str:
        app(["check", *words], exit_on_error=False, print_error=False)
        return capsys.readouterr().out

    return run


def test_ready(tmp_path: Path, checked: Checked) -> None:
    clean_folder(tmp_path / "own")
    (tmp_path / "own/unlabeled/bad.jpg").write_bytes(b"")
    said = checked(str(tmp_path / "own"))
    assert "18 pictures of 3 classes: brick 6, grass 6, water 6" in said
    assert "1 unlabeled picture cannot be read: left out\n    unlabeled/bad.jpg" in said
    assert "Ready: fullmatch train" in said and "an estimate" in said
    facts = json.loads(Path("check.json").read_text())
    assert facts["works"] and 0 < facts["minutes"] <= 10
    assert facts["remarks"][0]["files"] == ["unlabeled/bad.jpg"]


def test_files_that_training_leaves_out(tmp_path: Path, checked: Checked) -> None:
    (clean_folder(tmp_path / "own") / "unlabeled/notes.txt").write_text("?")
    said = checked(str(tmp_path / "own"))
    assert "! 1 file, no pictures by name (.txt 1): left out\n    unlabeled/notes.txt\n" in said
    assert "Ready: fullmatch train" in said


def test_not_ready(tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]) -> None:
    save(picture("brick", 0), tmp_path / "own/labeled/brick/0.png")
    with pytest.raises(SystemExit) as stopped:
        checked(str(tmp_path / "own"), "--out", str(tmp_path / "found.json"))
    assert stopped.value.code == 2
    assert "✗ 1 class with labels" in capsys.readouterr().out
    assert not json.loads((tmp_path / "found.json").read_text())["works"]


def test_nothing_is_written_among_the_pictures(
    tmp_path: Path, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clean_folder(tmp_path / "own")
    before = sorted(folder.rglob("*"))
    monkeypatch.chdir(folder)
    assert "not written" in checked(".")
    with pytest.raises(UserError, match="left alone"):
        checked(".", "--out", "findings.json")
    assert sorted(folder.rglob("*")) == before


def test_arrays_and_missing_folders(tmp_path: Path, checked: Checked) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (20, 16, 16), np.uint8)
    np.savez(tmp_path / "a.npz", train_x=x, train_y=np.array([0, 1] * 6 + [-1] * 8))
    assert "12 pictures of 2 classes" in checked(str(tmp_path / "a.npz"))
    with pytest.raises(UserError, match="nowhere"):
        checked(str(tmp_path / "nowhere"))


def test_words() -> None:
    assert duration(42) == "40 seconds" and duration(600) == "10 minutes"
    assert counted({str(k): k + 1 for k in range(20)}) == "fewest 1 (0), most 20 (19)"


def test_ready_with_the_command_as_it_must_be_typed(tmp_path: Path, checked: Checked) -> None:
    home = clean_folder(tmp_path / "my pets")
    said = checked(str(home), "--minutes", "0.5")
    assert f"Ready: fullmatch train '{home}' --minutes 0.5   (about" in said


def test_a_place_that_is_not_there_is_said_before_reading(
    tmp_path: Path, checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clean_folder(tmp_path / "own")
    with pytest.raises(UserError, match="there is no folder"):
        checked(str(home), "--out", str(tmp_path / "gone" / "found.json"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("labels", "said"), [(1, "cannot be estimated"), (2, "held out in turn")])
def test_what_accuracy_will_be_measured_on(
    labels: int, said: str, tmp_path: Path, checked: Checked
) -> None:
    clean_folder(tmp_path / "own", labels=labels)
    assert said in checked(str(tmp_path / "own"))


def test_a_full_disk_takes_nothing(tmp_path: Path, checked: Checked) -> None:
    home = clean_folder(tmp_path / "own")
    with full_disk(), pytest.raises(UserError, match=r"cannot write check\.json"):
        checked(str(home))
    assert not list(Path.cwd().iterdir())
