"""`fullmatch check`: the text on the screen, the file of findings, and the exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App

from fullmatch.cli.check_text import format_counts, format_duration
from fullmatch.cli.commands.check import check
from fullmatch.errors import UserError
from fullmatch.experiment import planning
from tests.full_disk import full_disk
from tests.own_pictures import clean_folder, picture, save

RunCheck = Callable[..., str]


@pytest.fixture
def run_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunCheck:
    """Runs the command in a folder next to the pictures, and returns its output."""
    monkeypatch.setattr(planning, "measure_step_seconds", lambda config, source: 0.05)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app = App(result_action="return_value")
    app.command(check)

    def run(*arguments: str) -> str:
        app(["check", *arguments], exit_on_error=False, print_error=False)
        return capsys.readouterr().out

    return run


def test_ready(tmp_path: Path, run_check: RunCheck) -> None:
    clean_folder(tmp_path / "own")
    (tmp_path / "own/unlabeled/bad.jpg").write_bytes(b"")
    output = run_check(str(tmp_path / "own"))
    assert "18 pictures of 3 classes: brick 6, grass 6, water 6" in output
    assert "1 unlabeled picture cannot be read: left out\n    unlabeled/bad.jpg" in output
    assert "Ready: fullmatch train" in output
    assert "on this machine, estimated)" in output
    content = json.loads(Path("check.json").read_text())
    assert content["works"]
    assert 0 < content["minutes"] <= 10
    assert content["remarks"][0]["files"] == ["unlabeled/bad.jpg"]


def test_skipped_files_are_listed(tmp_path: Path, run_check: RunCheck) -> None:
    (clean_folder(tmp_path / "own") / "unlabeled/notes.txt").write_text("?")
    output = run_check(str(tmp_path / "own"))
    assert "! 1 non-picture file (.txt 1): left out\n    unlabeled/notes.txt\n" in output
    assert "Ready: fullmatch train" in output


def test_not_ready(tmp_path: Path, run_check: RunCheck, capsys: pytest.CaptureFixture[str]) -> None:
    save(picture("brick", 0), tmp_path / "own/labeled/brick/0.png")
    with pytest.raises(SystemExit) as stopped:
        run_check(str(tmp_path / "own"), "--out", str(tmp_path / "findings.json"))
    assert stopped.value.code == 2
    assert "✗ 1 class with labels" in capsys.readouterr().out
    assert not json.loads((tmp_path / "findings.json").read_text())["works"]


def test_nothing_is_written_into_the_folder_of_pictures(
    tmp_path: Path, run_check: RunCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clean_folder(tmp_path / "own")
    before = sorted(folder.rglob("*"))
    monkeypatch.chdir(folder)
    assert "not written" in run_check(".")
    with pytest.raises(UserError, match="inside your folder of pictures"):
        run_check(".", "--out", "findings.json")
    assert sorted(folder.rglob("*")) == before


def test_arrays_and_missing_folders(tmp_path: Path, run_check: RunCheck) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (20, 16, 16), np.uint8)
    np.savez(tmp_path / "a.npz", train_x=x, train_y=np.array([0, 1] * 6 + [-1] * 8))
    assert "12 pictures of 2 classes" in run_check(str(tmp_path / "a.npz"))
    with pytest.raises(UserError, match="nowhere"):
        run_check(str(tmp_path / "nowhere"))


def test_formatting() -> None:
    assert format_duration(42) == "40 seconds"
    assert format_duration(600) == "10 minutes"
    assert format_counts({str(k): k + 1 for k in range(20)}) == "fewest 1 (0), most 20 (19)"


def test_the_training_command_is_quoted_for_the_shell(tmp_path: Path, run_check: RunCheck) -> None:
    home = clean_folder(tmp_path / "my pets")
    output = run_check(str(home), "--minutes", "0.5")
    assert f"Ready: fullmatch train '{home}' --minutes 0.5   (about" in output


def test_a_missing_output_folder_is_an_error_before_reading(
    tmp_path: Path, run_check: RunCheck, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clean_folder(tmp_path / "own")
    with pytest.raises(UserError, match="there is no folder"):
        run_check(str(home), "--out", str(tmp_path / "gone" / "findings.json"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("labels", "text"), [(1, "cannot be estimated"), (2, "estimated by cross-validation")]
)
def test_how_accuracy_will_be_measured(
    labels: int, text: str, tmp_path: Path, run_check: RunCheck
) -> None:
    clean_folder(tmp_path / "own", labels=labels)
    assert text in run_check(str(tmp_path / "own"))


def test_a_full_disk_leaves_no_file(tmp_path: Path, run_check: RunCheck) -> None:
    home = clean_folder(tmp_path / "own")
    with full_disk(), pytest.raises(UserError, match=r"cannot write check\.json"):
        run_check(str(home))
    assert not list(Path.cwd().iterdir())
