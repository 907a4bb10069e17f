"""Whole run folders as values: finished, unfinished, damaged, and of fullmatch 0.1."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullmatch.errors import UserError
from fullmatch.storage.runs import RunSettings, StepCurve, read_run
from tests.trained_runs import train_digits, train_pets
from tests.written_runs import make_comparison, write_old_run, write_run


def test_trained_run() -> None:
    run = read_run(train_digits())
    assert (run.algorithm, run.data, run.finished, run.benchmark) == (
        "fullmatch",
        "digits",
        True,
        True,
    )
    assert run.predictions is not None
    assert run.baseline is not None
    assert run.scores is not None
    assert run.baseline.algorithm == "supervised"
    assert run.predictions.right.mean() == pytest.approx(run.scores.top1)
    assert run.accuracy("teacher").values[-1] == pytest.approx(run.scores.top1)
    assert sum(run.label_counts.values()) == 40
    assert len(run.label_counts) == 10
    assert run.metric("loss").steps[-1] == run.steps == run.steps_done


def test_reliability_agrees_with_the_calibration_error_of_the_result() -> None:
    run = read_run(train_digits())
    assert run.predictions is not None
    assert run.scores is not None
    total = len(run.predictions.labels)
    bins = run.predictions.reliability()
    error = sum(count / total * abs(confidence - right) for confidence, right, count in bins)
    assert error == pytest.approx(run.scores.ece, abs=1e-6)


def test_own_pictures_are_not_a_benchmark() -> None:
    run = read_run(train_pets())
    assert not run.benchmark
    assert run.scores
    assert run.label_counts == {0: 3, 1: 3}
    # The only true labels it could be judged by are those that it learned from.
    assert len(run.metric("loss").values)
    assert not len(run.judged_metric("loss").values)
    assert run.classes == ("cat", "dög 2")


def test_pictures_by_confidence(tmp_path: Path) -> None:
    predictions = read_run(write_run(tmp_path / "run")).predictions
    assert predictions is not None
    assert predictions.least_confident(2) == [0, 1]
    assert predictions.most_confident_mistakes(3) == [11, 10, 9]  # all of the last class


def test_both_formats_give_the_same_values(tmp_path: Path) -> None:
    comparison = make_comparison(start="runs/old")
    new = read_run(write_run(tmp_path / "new" / "run", baseline=comparison))
    old_comparison = {
        "gain": comparison.gain,
        "interval": comparison.interval,
        "better": comparison.better,
        "worse": comparison.worse,
        "chance": comparison.p_value,
        "verdict": comparison.verdict,
        "images": comparison.images,
        "start": comparison.start,
    }
    old = read_run(write_old_run(tmp_path / "old" / "run", labels_only=old_comparison))
    assert old.result == new.result
    assert old.records == new.records
    assert old.settings == new.settings
    assert old.label_counts == new.label_counts


def test_unfinished_run(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", finished=False, records=3))
    assert not run.finished
    assert run.steps_done == 30
    assert run.predictions is None
    assert read_run(write_run(tmp_path / "new", finished=False, records=0)).steps_done == 0


def test_last_line_of_the_log_may_be_half_written(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", finished=False, records=3)
    with (path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 40, "lo')
    assert read_run(path).steps_done == 30


def test_damage_in_the_middle_of_the_log_is_an_error(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    lines = (path / "metrics.jsonl").read_text().splitlines()
    (path / "metrics.jsonl").write_text("\n".join([lines[0], lines[1][:9], lines[2]]))
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
        read_run(path)


@pytest.mark.parametrize(
    "name", ["config.toml", "result.json", "split.json", "predictions.safetensors"]
)
def test_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "run")
    (path / name).write_bytes(b"\x00\xff{")
    with pytest.raises(UserError, match=f"{name} is damaged"):
        read_run(path)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        read_run(tmp_path)
    (tmp_path / "config.toml").write_text("x = 1\n")
    with pytest.raises(UserError, match=r"config\.toml is damaged .*choose another run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"name": "fixmatch"}, "fixmatch"),
        ({"name": "fixmatch", "full": {"alpha": 1.0}}, "fullmatch"),
        ({"name": "full-fixmatch", "full": {"alpha": 1.0}}, "fullmatch"),
        ({"name": "flexmatch", "full": {"alpha": 1.0}}, "full-flexmatch"),
    ],
)
def test_display_names_of_algorithms(spec: dict[str, Any], name: str) -> None:
    table = {"data": {"name": "digits"}, "training": {"steps": 1}, "algorithm": spec}
    assert RunSettings.parse(table).algorithm == name


def test_thinning_keeps_the_last_value() -> None:
    steps = np.arange(1000.0)
    thin = StepCurve(steps, steps**2).thinned(100)
    assert len(thin.steps) == 100
    assert thin.steps[-1] == 999
    assert thin.values[-1] == 999**2
    assert thin.steps[0] == pytest.approx(4.5)
    assert StepCurve(steps, steps).thinned(1000).steps is steps


def test_nan_losses_are_read(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", finished=False)
    with (path / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"step": 60, "loss": float("nan")}) + "\n")
    assert np.isnan(read_run(path).metric("loss").values[-1])


def test_needs_no_torch() -> None:
    code = "import sys, fullmatch.storage.runs\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
