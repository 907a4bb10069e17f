"""The benchmark of the fast preset: it resumes, records failures, and compares without the test."""

import json
from pathlib import Path

import pytest

from benchmarks import recipe
from fullmatch.storage.run_folder import RunFolder

QUICK = ["--data", "digits", "--labels", "40", "--algorithm", "fullmatch", "--steps", "4"]
TRIAL = recipe.Trial(
    data="digits",
    labels=40,
    algorithm="fullmatch",
    steps=4,
    fold=0,
    name="teacher",
    settings="training.pseudo_labels=teacher training.log_every=2",
)


def test_measures_once_and_writes_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*QUICK, "--folds", "0", "--only", "paper", "fast"]
    arguments += ["--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    recipe.main([*arguments, "--minutes", "0"])
    assert "not finished: paper, fold 0; run the same command again" in capsys.readouterr().out
    recipe.main(arguments)
    lines = (tmp_path / "recipe.jsonl").read_text()
    paper, fast = map(json.loads, lines.splitlines())
    assert fast["settings"] == "budget=fast"
    assert 0 <= paper["hidden"] <= 1
    recipe.main(arguments)
    assert (tmp_path / "recipe.jsonl").read_text() == lines
    page = (tmp_path / "recipe.md").read_text(encoding="utf-8")
    assert "## digits, 40 labels, fullmatch, 4 steps" in page
    assert "| paper | 0 | " in page


def test_a_trial_pauses_at_the_deadline_and_goes_on(tmp_path: Path) -> None:
    assert recipe.measure(TRIAL, tmp_path, deadline=0.0) is None
    assert (tmp_path / TRIAL.folder / "checkpoints").exists()
    measured = recipe.measure(TRIAL, tmp_path, deadline=float("inf"))
    assert measured is not None
    assert measured.trial == TRIAL
    folder = RunFolder(tmp_path / TRIAL.folder)
    assert folder.finished
    again = recipe.measure(TRIAL, tmp_path, deadline=float("inf"))  # its line was lost
    assert again is not None
    assert again.hidden == measured.hidden


def test_failures_are_recorded_and_differences_are_paired() -> None:
    def made(name: str, fold: int, **result: object) -> recipe.Measurement:
        return recipe.Measurement(**vars(TRIAL) | {"name": name, "fold": fold} | result)

    page = recipe.render_page(
        [
            made("paper", 0, hidden=0.5, test=0.6, minutes=1.0),
            made("paper", 1, hidden=0.7, test=0.6, minutes=1.0),
            made("teacher", 1, hidden=0.8, test=0.5, minutes=2.0),
            made("fast", 0, failure="the loss became NaN at step 3"),
        ]
    )
    assert "| paper | 0, 1 | 60.00 | +0.00 | 60.00 | 1.0 |" in page
    assert "| teacher | 1 | 80.00 | +10.00 | 50.00 | 2.0 |" in page
    assert "| fast | 0 | failed: the loss became NaN at step 3 | - | - | - |" in page


def test_every_trial_is_a_valid_config() -> None:
    for name, settings in recipe.TRIALS.items():
        values = vars(TRIAL) | {"data": "cifar10", "name": name, "settings": " ".join(settings)}
        assert recipe.config_of(recipe.Trial(**values)).training.steps == 4
