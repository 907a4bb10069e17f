"""Run folders of earlier versions are read, resumed, reported and used by every command."""

import json
import shutil
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.storage.result import Verdict
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_run
from tests.own_pictures import picture, save

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUNS = FIXTURES / "runs-0.1"


def copy_run(name: str, folder: Path, runs: Path = RUNS) -> RunFolder:
    return RunFolder.existing(shutil.copytree(runs / name, folder / name))


def test_the_result_is_upgraded(tmp_path: Path) -> None:
    folder = copy_run("finished", tmp_path)
    raw = json.loads(folder.result.read_text())
    result = folder.read_result()
    assert "format" not in raw
    assert result.format == 2
    assert result.teacher is not None
    assert result.teacher.top1 == raw["teacher"]["last"]
    assert result.baseline is not None
    assert result.baseline.gain == raw["labels_only"]["gain"]
    assert result.split_hash == raw["split"]
    assert result.config_hash == raw["config"]
    folder.write_result(result)
    assert folder.read_result() == result


def test_the_baseline_is_found_under_its_old_name(tmp_path: Path) -> None:
    run = read_run(copy_run("finished", tmp_path).path)
    assert run.baseline is not None
    assert run.baseline.algorithm == "supervised"
    assert run.baseline.path == run.path / "labels-only"
    assert len(run.metric("loss").steps) == len(run.records) == 6


def test_an_estimate_is_upgraded(tmp_path: Path) -> None:
    result = copy_run("own", tmp_path).read_result()
    assert result.estimate is not None
    assert not result.lacks_estimate
    assert (result.estimate.folds, result.estimate.repeats) == (5, 2)
    assert result.estimate.gain.verdict is Verdict.UNCLEAR
    assert result.calibration is not None
    assert result.temperature is None
    assert "too few" in result.calibration.note


@pytest.mark.parametrize(("version", "step"), [("0.1", 20), ("0.2", 8)])
def test_a_killed_run_resumes_to_the_end_of_an_undisturbed_one(
    version: str, step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = FIXTURES / f"runs-{version}"
    folder = copy_run("half", tmp_path, runs)
    main(["resume", str(folder.path)])
    assert f"resumed at step {step}" in capsys.readouterr().out
    resumed, undisturbed = folder.read_records(), RunFolder(runs / "finished").read_records()
    assert [record.step for record in resumed] == [record.step for record in undisturbed]
    # Not bit for bit: the folder was written on another machine.
    assert resumed[-1].metrics["loss"] == pytest.approx(undisturbed[-1].metrics["loss"], rel=1e-3)


@pytest.mark.parametrize("name", ["finished", "own"])
def test_report_and_card(name: str, tmp_path: Path) -> None:
    folder = copy_run(name, tmp_path)
    main(["report", str(folder.path)])
    main(["card", str(folder.path), "--out", str(tmp_path / "card.md")])
    accuracy = "100.0" if name == "own" else f"{100 * folder.read_result().teacher.top1:.1f}"  # type: ignore[union-attr]
    for page in (folder.path / "report.html", tmp_path / "card.md"):
        assert accuracy in page.read_text(encoding="utf-8"), page


def test_predict(tmp_path: Path) -> None:
    folder = copy_run("own", tmp_path)
    save(picture("grass", 77), tmp_path / "new" / "a.png")
    table = tmp_path / "predictions.csv"
    main(["predict", str(folder.path), str(tmp_path / "new"), "--csv", str(table)])
    assert table.read_text().splitlines()[1].startswith(f"{tmp_path / 'new' / 'a.png'},grass")


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    folder = copy_run("finished", tmp_path)
    model, result = folder.model.read_bytes(), folder.read_result()
    main(["report", str(folder.path)])
    assert folder.model.read_bytes() == model
    assert folder.read_result() == result
