"""The page on own pictures: its commands run, and what it promises is what the code does."""

import re
import shlex
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.algorithms import algorithm
from fullmatch.cli.commands.check import check
from fullmatch.cli.commands.train import train
from fullmatch.config import parse_overrides
from fullmatch.data.quality import cleaning as preparation
from fullmatch.data.quality import outliers as strangers
from fullmatch.experiment import cross_validation as folds
from fullmatch.experiment import planning
from fullmatch.experiment.settings import resolve
from tests.own_pictures import clean_folder

PAGE = (Path(__file__).parents[2] / "docs" / "own_pictures.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ fullmatch (.*)$", PAGE, flags=re.MULTILINE)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "step_seconds", lambda config, source: 0.05)
    monkeypatch.setattr(folds, "LEAST", 2)
    monkeypatch.chdir(tmp_path)
    return clean_folder(tmp_path / "photos", labels=3, unlabeled=6, test=1)


def test_every_command_runs(photos: Path) -> None:
    app = App(result_action="return_value")
    app.command(check)
    app.command(train)
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        app(shlex.split(command), exit_on_error=False, print_error=False)
    assert {path.name for path in photos.parent.iterdir()} >= {"check.json", "findings.json"}
    (run,) = (photos.parent / "runs").iterdir()
    assert (run / "model.safetensors").is_file()


def test_every_knob_exists() -> None:
    for setting in re.findall(r"--set ([\w.]+=[\w.-]+)", PAGE):
        parse_overrides([setting])
        resolve(assignments=[setting])
    for name in re.findall(r"--algorithm ([\w-]+)", PAGE):
        algorithm(name)


def test_numbers_are_those_of_the_code() -> None:
    assert f"Fewer than {planning.MANY} are held out in turn" in PAGE
    assert f"(below {planning.VERY_FEW}\nlabels, twice)" in PAGE
    assert planning.FOLDS == 5 and planning.SHORTER == 3 and planning.MINUTES == 10
    assert strangers.FAR == 3 and preparation.UNEVEN == 2 and preparation.REPEATS == 10
