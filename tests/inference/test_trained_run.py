"""A finished run is loaded completely, or one line says what is wrong with it."""

from pathlib import Path

import pytest

from fullmatch.cli.commands.resume import resume
from fullmatch.errors import UserError
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.result import Calibration
from tests.served import calibrated_at, copy_run, digits_run
from tests.small_pictures import write_pets
from tests.small_runs import begin, config


def replace_in_config(run: Path, old: str, new: str) -> None:
    text = (run / "config.toml").read_text()
    assert old in text
    (run / "config.toml").write_text(text.replace(old, new))


def test_loads_a_run(tmp_path: Path) -> None:
    run = TrainedRun(digits_run())
    assert run.classifier.classes == run.source.classes == tuple("0123456789")
    assert run.temperature is None
    assert run.calibration_note.endswith("not calibrated: no labels were held out for it")
    path = copy_run(digits_run(), tmp_path / "run", calibration=calibrated_at(2.0))
    calibrated = TrainedRun(path)
    assert calibrated.temperature == 2.0
    assert calibrated.calibration_note == ""
    too_few = Calibration(temperature=None, images=3, note="3 held-out labels are too few")
    path = copy_run(digits_run(), tmp_path / "few", calibration=too_few)
    assert "not calibrated: 3 held-out labels" in TrainedRun(path).calibration_note


def test_unfinished_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        TrainedRun(tmp_path)
    begin(config(), tmp_path / "begun")
    with pytest.raises(UserError, match="not finished; resume with: fullmatch resume"):
        TrainedRun(tmp_path / "begun")
    run = copy_run(digits_run(), tmp_path / "run")
    (run / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"result\.json is damaged"):
        TrainedRun(run)


def test_changed_data(tmp_path: Path) -> None:
    run = copy_run(digits_run(), tmp_path / "run")
    replace_in_config(run, '"digits"', f'"{write_pets(tmp_path)}"')
    with pytest.raises(UserError, match=r"is not what .* was trained on: it has 2 classes"):
        _ = TrainedRun(run).source


def test_missing_pictures(tmp_path: Path) -> None:
    run = copy_run(digits_run(), tmp_path / "run")
    begun = begin(config(), tmp_path / "begun").folder.path
    for path in (run, begun):
        replace_in_config(path, '"digits"', '"gone"')
    with pytest.raises(UserError, match=f"^gone, which {run} was trained on, is gone; put it back"):
        _ = TrainedRun(run).source
    with pytest.raises(UserError, match=f"^gone, which {begun} was trained on, is gone"):
        resume(begun)
    replace_in_config(run, "baseline = false", "baseline = true")
    with pytest.raises(UserError, match=f"^gone, which {run} was trained on, is gone"):
        resume(run)  # its baseline still has to be trained
