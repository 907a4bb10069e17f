"""What is read from run folders, whole, unfinished and damaged."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fullmatch.errors import UserError
from fullmatch.storage.runs import Curve, Predictions, read_run
from tests.report.written import write_run


def test_a_real_run(digits_run: Path) -> None:
    run = read_run(digits_run)
    assert (run.algorithm, run.data, run.finished, run.benchmark) == (
        "fullmatch",
        "digits",
        True,
        True,
    )
    assert run.predictions is not None and run.labels_only is not None
    assert run.labels_only.algorithm == "supervised"
    assert run.predictions.right.mean() == pytest.approx(run.scores["last"])
    assert run.accuracy("teacher").values[-1] == pytest.approx(run.scores["last"])
    assert sum(run.label_counts.values()) == 40 and len(run.label_counts) == 10
    assert run.metric("loss").steps[-1] == run.steps == run.steps_done


def test_reliability_gives_the_calibration_error_of_the_result(digits_run: Path) -> None:
    run = read_run(digits_run)
    assert run.predictions is not None
    total = len(run.predictions.labels)
    bins = run.predictions.reliability()
    error = sum(count / total * abs(sure - right) for sure, right, count in bins)
    assert error == pytest.approx(run.scores["ece"], abs=1e-6)


def test_own_pictures_are_no_benchmark(pets_run: Path) -> None:
    run = read_run(pets_run)
    assert not run.benchmark and run.scores and run.label_counts == {0: 3, 1: 3}
    # The only true labels it could be judged by are those that it learned from.
    assert len(run.metric("loss").values) and not len(run.judged("loss").values)
    assert run.classes == ["cat", "dög 2"]


def test_which_pictures_are_shown(tmp_path: Path) -> None:
    found = read_run(write_run(tmp_path / "run")).predictions
    assert found is not None
    assert found.least_sure(2) == [0, 1]
    assert found.surest_mistakes(3) == [11, 10, 9]  # the last class, the surest first


def test_an_unfinished_run(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", finished=False, records=3))
    assert not run.finished and run.steps_done == 30 and run.predictions is None
    assert read_run(write_run(tmp_path / "new", finished=False, records=0)).steps_done == 0


def test_a_line_that_is_being_written(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", finished=False, records=3)
    with (path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 40, "lo')
    assert read_run(path).steps_done == 30


def test_damage_in_the_middle_of_the_log_is_said(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    lines = (path / "metrics.jsonl").read_text().splitlines()
    (path / "metrics.jsonl").write_text("\n".join([lines[0], lines[1][:9], lines[2]]))
    with pytest.raises(UserError, match=r"metrics\.jsonl"):
        read_run(path)


@pytest.mark.parametrize(
    "name", ["config.toml", "result.json", "split.json", "predictions.safetensors"]
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "run")
    (path / name).write_bytes(b"\x00\xff{")
    with pytest.raises(UserError, match=name):
        read_run(path)


def test_predictions_of_something_else_are_named(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    save_file({"other": np.zeros(3)}, path / "predictions.safetensors")
    with pytest.raises(UserError, match=r"predictions\.safetensors"):
        read_run(path)


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run folder"):
        read_run(tmp_path)
    (tmp_path / "config.toml").write_text("x = 1\n")
    with pytest.raises(UserError, match="not the config of a run"):
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
def test_names_people_use(tmp_path: Path, spec: dict[str, object], name: str) -> None:
    run = read_run(write_run(tmp_path / "run"))
    run.config["algorithm"] = spec
    assert run.algorithm == name


def test_thinning_keeps_the_end() -> None:
    steps = np.arange(1000.0)
    thin = Curve(steps, steps**2).thinned(100)
    assert len(thin.steps) == 100 and thin.steps[-1] == 999 and thin.values[-1] == 999**2
    assert thin.steps[0] == pytest.approx(4.5)
    assert Curve(steps, steps).thinned(1000).steps is steps


def test_losses_that_are_no_numbers_are_read(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", finished=False)
    with (path / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"step": 60, "loss": float("nan")}) + "\n")
    assert np.isnan(read_run(path).metric("loss").values[-1])


def test_no_torch() -> None:
    code = "import sys, fullmatch.report.page, fullmatch.cli.commands.report\n"
    code += "assert not {'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_surest_of_every_class_come_first() -> None:
    confidence = np.array([0.9, 0.8, 0.99, 0.6, 0.7])
    rows = np.stack([confidence, 1 - confidence], axis=1)
    rows[3] = rows[3, ::-1]
    found = Predictions(rows, np.array([-1, 1, 0, 1, -1]))
    assert found.surest(3) == [2, 3, 0] and found.least_sure(1) == [3]
    assert found.wrong.tolist() == [False, True, False, False, False]
    assert found.surest_mistakes(5) == [1]
