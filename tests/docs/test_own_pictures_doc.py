"""The page on own pictures: its commands run, and its numbers are those of the code."""

import shlex
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.algorithms import algorithm
from fullmatch.cli.commands.check import check
from fullmatch.cli.commands.train import train
from fullmatch.data.quality import (
    alignment,
    cleaning,
    duplicates,
    outliers,
    photo_duplicates,
    photo_outliers,
    suspect_labels,
)
from fullmatch.data.sources import picture_files
from fullmatch.experiment import (
    cross_validation,
    nan_recovery,
    plan_types,
    planning,
    scratch_plan,
)
from fullmatch.experiment.settings import resolve
from tests.own_pictures import clean_folder
from tests.patterns import find_all

PAGE = (Path(__file__).parents[2] / "docs" / "own_pictures.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scratch_plan, "measure_step_seconds", lambda config, source: 0.05)
    monkeypatch.chdir(tmp_path)
    return clean_folder(tmp_path / "photos", labels=3, unlabeled=6, test=1)


def test_every_command_runs(photos: Path) -> None:
    app = App(result_action="return_value")
    app.command(check)
    app.command(train)
    commands = find_all(r"^\$ fullmatch (.*)$", PAGE)
    assert len(commands) == 3
    for command in commands:
        app(shlex.split(command), exit_on_error=False, print_error=False)
    assert {path.name for path in photos.parent.iterdir()} >= {
        *("check.json", "check.html", "findings.json", "findings.html")
    }
    (run,) = (photos.parent / "runs").iterdir()
    assert (run / "model.safetensors").is_file()


@pytest.mark.parametrize("setting", find_all(r"--set ([\w.]+=[\w.-]+)", PAGE))
def test_every_setting_exists(setting: str) -> None:
    resolve(assignments=[setting])


@pytest.mark.parametrize("name", find_all(r"--algorithm ([\w-]+)", PAGE))
def test_every_algorithm_exists(name: str) -> None:
    algorithm(name)


@pytest.mark.parametrize(
    "sentence",
    [
        f"fewer than {cross_validation.MANY} labels, cross-validation holds all of them out",
        f"twice if there are fewer than {cross_validation.VERY_FEW} labels",
        f"with a warning above {picture_files.WARN_UNREADABLE:.0%}".replace("%", " %"),
        f"above {picture_files.MAX_UNREADABLE:.0%}, training will not".replace("%", " %"),
        f"a correlation of at least {duplicates.MIN_CORRELATION}",
        f"with a correlation of at least {alignment.MIN_DETAIL}",
        f"color pictures of at least {planning.PHOTO_SIDE} pixels pass once",
        f"At least {photo_outliers.MIN_LABELED} labeled pictures are needed",
        f"Classes need {suspect_labels.MIN_LABELS} labels or more",
        f"If {100 * suspect_labels.NOISE:.0f} % of all labels were wrong, this one would be with a "
        f"probability of at least {100 * suspect_labels.LIKELY_WRONG:.0f} %",
    ],
)
def test_numbers_on_the_page_are_those_of_the_code(sentence: str) -> None:
    assert sentence in TEXT


@pytest.mark.parametrize(
    ("words", "value", "expected"),
    [
        ("in five folds", cross_validation.FOLDS, 5),
        ("train for a third of the steps", cross_validation.SHORTER, 3),
        ("at least a hundred, if the final", cross_validation.LEAST_STEPS, 100),
        ("**Time.** Ten minutes", plan_types.MINUTES, 10),
        ("At least a hundred steps are trained", cross_validation.LEAST_STEPS, 100),
        ("more than three times the usual distance", outliers.FAR, 3),
        ("the five that have the most similar features", photo_duplicates.NEIGHBORS, 5),
        ("through the five most similar pictures", photo_outliers.NEIGHBORS, 5),
        ("more than two usual deviations below", photo_outliers.FAR_IN_DESCRIPTORS, 2),
        ("more than twice as many labels", cleaning.MAX_IMBALANCE, 2),
        ("shown more often, up to ten times", cleaning.MAX_REPEATS, 10),
        ("at least a fifth of the unlabeled pictures are outliers", outliers.MANY, 0.2),
        ("at a third of the learning rate, at most three times", nan_recovery.RETRIES, 3),
    ],
)
def test_numbers_in_words_are_those_of_the_code(words: str, value: float, expected: float) -> None:
    assert words in TEXT
    assert value == expected
