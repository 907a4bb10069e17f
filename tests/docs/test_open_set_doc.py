"""The page on unknown classes: its commands run, and its names are those of the code."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.algorithms import algorithm
from fullmatch.cli.commands.train import train
from fullmatch.storage.result import OpenSetScores
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import clean_folder, outlier, save
from tests.patterns import find_all

PAGE = (Path(__file__).parents[2] / "docs" / "open_set.md").read_text(encoding="utf-8")
COMMANDS = find_all(r"^\$ fullmatch (.*)$", PAGE)
SHORT = ["--model", "wrn-10-1", "--set", "training.steps=2", "--set", "training.batch=6"]


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    clean_folder(tmp_path / "photos", labels=3, unlabeled=6, test=1)
    names = re.findall(r"unknown_classes=(\S+)", command)
    if names == ["other"]:
        save(outlier(0), tmp_path / "photos" / "test" / "other" / "0.png")
    app = App(result_action="return_value")
    app.command(train)
    app([*shlex.split(command), *SHORT, "--out", "run"], exit_on_error=False, print_error=False)
    result = RunFolder(tmp_path / "run").read_result()
    assert result.unknown_classes == tuple(",".join(names).split(",") if names else ())
    assert (result.open_set is not None) is bool(names)
    assert ("Unknown classes (" in capsys.readouterr().out) is bool(names)


def test_every_score_is_explained() -> None:
    for field in fields(OpenSetScores):
        assert f"`{field.name}`" in PAGE or field.name == "images"


@pytest.mark.parametrize("name", find_all(r"`((?:full-)?iomatch)`", PAGE))
def test_every_method_exists(name: str) -> None:
    assert algorithm(name).open_set
