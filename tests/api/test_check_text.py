"""`fullmatch check`: the text on the screen, the file of findings, and the exit code."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App
from PIL import ImageOps

from fullmatch.api.check_text import format_counts, format_duration
from fullmatch.cli.commands.check import check
from fullmatch.errors import UserError
from fullmatch.experiment import scratch_plan
from tests.full_disk import full_disk
from tests.own_pictures import clean_folder, picture, save
from tests.photos import photo, photo_folder

RunCheck = Callable[..., str]


@pytest.fixture
def run_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunCheck:
    """Runs the command in a folder next to the pictures, and returns its output."""
    monkeypatch.setattr(scratch_plan, "measure_step_seconds", lambda config, source: 0.05)
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
    assert re.search(r"pictures   \d+x\d+, color\n", output)  # all have the same size
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


def test_photos_are_compared_by_features(tmp_path: Path, run_check: RunCheck) -> None:
    home = photo_folder(tmp_path / "own", test=2)
    save(ImageOps.mirror(photo("balls", 200)), home / "unlabeled/mirror.png")
    save(photo("bricks", 1203).crop((20, 10, 134, 110)), home / "unlabeled/crop.png")
    save(photo("sky", 1), home / "unlabeled/sky.png")
    save(photo("bricks", 77), home / "labeled/balls/wrong.png")
    output = run_check(str(home))
    assert "compared   by features of timm:" in output
    assert "    labeled/balls/wrong.png: labeled balls, looks like bricks (" in output
    remarks = {each["kind"]: each for each in json.loads(Path("check.json").read_text())["remarks"]}
    near = remarks["near copies"]
    assert near["groups"] == [
        ["unlabeled/balls0.png", "unlabeled/mirror.png"],
        ["unlabeled/bricks3.png", "unlabeled/crop.png"],
    ]
    assert near["notes"][1] == "mirror image of unlabeled/balls0.png"
    assert near["notes"][3] == "crop of unlabeled/bricks3.png"
    assert remarks["strangers"]["files"][0] == "unlabeled/sky.png"
    assert remarks["suspect labels"]["files"] == ["labeled/balls/wrong.png"]
    page = Path("check.html").read_text()
    assert page.count("<img") == sum(len(each["files"]) for each in remarks.values())
    assert "looks like bricks" in page


def test_other_pictures_are_compared_by_pixels(tmp_path: Path, run_check: RunCheck) -> None:
    clean_folder(tmp_path / "own")
    output = run_check(str(tmp_path / "own"))
    assert "compared   by pixels: features need color pictures of at least 64 pixels" in output
    assert json.loads(Path("check.json").read_text())["features"] is None


def test_photos_in_an_npz(tmp_path: Path, run_check: RunCheck) -> None:
    kinds = ["balls", "bricks"] * 14
    pictures = [np.asarray(photo(kind, at, (64, 64))) for at, kind in enumerate(kinds)]
    pictures += [pictures[20][:, ::-1], *pictures[:2]]
    labels = np.array([0, 1] * 6 + [-1] * 17)
    x, test = np.stack(pictures[:-2]), np.stack(pictures[-2:])
    np.savez(tmp_path / "a.npz", train_x=x, train_y=labels, test_x=test, test_y=[0, 1])
    assert "by features" in run_check(str(tmp_path / "a.npz"))
    remarks = {each["kind"]: each for each in json.loads(Path("check.json").read_text())["remarks"]}
    assert remarks["near copies"]["notes"] == ["", "mirror image of image 20"]
    assert remarks["test copies"]["files"] == ["image 0", "image 1"]
    assert Path("check.html").read_text().count('src="data:image/jpeg;base64,/') >= 4


def test_the_page_replaces_only_a_page_of_ours(tmp_path: Path, run_check: RunCheck) -> None:
    home = clean_folder(tmp_path / "own")
    run_check(str(home))
    run_check(str(home))
    Path("check.html").write_text("my own page")
    with pytest.raises(UserError, match=r"check\.html exists and is not a fullmatch report"):
        run_check(str(home))
    assert Path("check.html").read_text() == "my own page"
    with pytest.raises(UserError, match=r"end --out with \.json"):
        run_check(str(home), "--out", "findings.html")
