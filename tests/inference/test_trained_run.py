"""A finished run is read back whole, or what is wrong with it is said in a line."""

from pathlib import Path

import pytest

from fullmatch.cli.commands.resume import resume
from fullmatch.errors import UserError
from fullmatch.inference.trained_run import TrainedRun
from tests.served import copied, digits_run
from tests.small_runs import begin, config


def test_reads_a_run_back(tmp_path: Path) -> None:
    run = TrainedRun(digits_run())
    assert run.classifier.classes == run.source.classes == tuple("0123456789")
    assert run.temperature is None
    assert run.uncalibrated.endswith("not calibrated: no labels were held out for it")
    warm = TrainedRun(copied(digits_run(), tmp_path / "run", temperature=2))
    assert warm.temperature == 2.0 and warm.uncalibrated == ""
    few = {"temperature": None, "calibration": {"note": "3 held-out labels are too few"}}
    assert "3 held-out" in TrainedRun(copied(digits_run(), tmp_path / "few", **few)).uncalibrated


def test_unfinished_damaged_or_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run folder"):
        TrainedRun(tmp_path)
    begin(config(), tmp_path / "begun")
    with pytest.raises(UserError, match="not finished; go on with: fullmatch resume"):
        TrainedRun(tmp_path / "begun")
    run = copied(digits_run(), tmp_path / "run")
    (run / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"result\.json is damaged"):
        TrainedRun(run)


def test_data_that_changed_is_refused(tmp_path: Path) -> None:
    from tests.small_pictures import pets_in

    run = copied(digits_run(), tmp_path / "run")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"digits"', f'"{pets_in(tmp_path)}"'))
    with pytest.raises(UserError, match=r"is not what .* was trained on: it has 2 classes"):
        _ = TrainedRun(run).source


def test_pictures_that_are_gone(tmp_path: Path) -> None:
    run, begun = copied(digits_run(), tmp_path / "run"), begin(config(), tmp_path / "begun").folder
    for path in (run, begun.path):
        text = (path / "config.toml").read_text().replace('"digits"', '"gone"')
        (path / "config.toml").write_text(text)
    with pytest.raises(UserError, match=f"^gone, which {run} was trained on, is gone; put it back"):
        _ = TrainedRun(run).source
    with pytest.raises(UserError, match=f"^gone, which {begun.path} was trained on, is gone"):
        resume(begun.path)
    text = (run / "config.toml").read_text().replace("baseline = false", "baseline = true")
    (run / "config.toml").write_text(text)
    with pytest.raises(UserError, match=f"^gone, which {run} was trained on, is gone"):
        resume(run)  # the labels alone are still to be learned from
