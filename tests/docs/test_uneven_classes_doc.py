"""The page on uneven classes: its commands run, and its numbers are those of the code."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.algorithms import algorithm
from fullmatch.cli.commands.train import train
from fullmatch.data.long_tail import class_weights, long_tailed_sizes
from fullmatch.data.quality.cleaning import MAX_REPEATS
from fullmatch.experiment.settings import read_config, resolve
from fullmatch.storage.result import UNEVEN, FinalScores
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import clean_folder
from tests.patterns import find_all

PAGE = (Path(__file__).parents[2] / "docs" / "uneven_classes.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
COMMANDS = find_all(r"^\$ fullmatch (.*)$", PAGE)
SHORT = ["--steps", "2", "--set", "training.batch=6", "--out", "run"]


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clean_folder(tmp_path / "photos", labels=3, unlabeled=6, test=1, size=16)
    app = App(result_action="return_value")
    app.command(train)
    app([*shlex.split(command), *SHORT], exit_on_error=False, print_error=False)
    folder = RunFolder(tmp_path / "run")
    result, config = folder.read_result(), read_config(folder)
    for setting in re.findall(r"data\.(\w+)=", command):
        assert getattr(config.data, setting) is not None
    if "imbalance" in command:
        assert result.labels_by_class[0] >= 8 * result.labels_by_class[-1]


@pytest.mark.parametrize("setting", find_all(r"`data\.(\w+)`", PAGE))
def test_every_setting_exists(setting: str) -> None:
    assert hasattr(resolve().data, setting)


@pytest.mark.parametrize("name", find_all(r"`((?:full-)?(?:adamatch|debiaspl|abc))`", PAGE))
def test_every_method_exists(name: str) -> None:
    algorithm(name)


@pytest.mark.parametrize(
    ("labels", "unlabeled", "first"), [(3720, 7443, (1500, 3000)), (1236, 9922, (500, 4000))]
)
def test_totals_of_the_published_benchmarks(
    labels: int, unlabeled: int, first: tuple[int, int]
) -> None:
    assert f"--labels {labels} --set data.unlabeled={unlabeled}" in TEXT
    weights = class_weights(100, 10)
    sizes = [long_tailed_sizes(total, weights)[0] for total in (labels, unlabeled)]
    assert tuple(sizes) == first


def test_how_often_a_picture_is_repeated() -> None:
    assert MAX_REPEATS == 10
    assert "up to ten times" in TEXT


def test_from_when_on_classes_count_as_uneven() -> None:
    assert UNEVEN == 2
    assert "more than twice as many labels or test images" in TEXT
    for name in find_all(r"`teacher\.(\w+)`", PAGE):
        assert name in {field.name for field in fields(FinalScores)}
