"""A finished run without a test gets its estimate once; one with a test needs none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.data import Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment import cross_validation as folds
from fullmatch.experiment.estimate import honest
from fullmatch.experiment.run import start
from fullmatch.storage.run_folder import RunFolder
from tests import small_runs


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Source:
    """Sixty labeled digits and as many unlabeled ones, without a test."""
    monkeypatch.setattr(folds, "LEAST", 2)
    labels = small_runs.digits().labels.clone()
    labels[60:] = -1
    return replace(small_runs.digits(), labels=labels, test=None, test_labels=None, benchmark=False)


def trained(source: Source, out: Path) -> RunFolder:
    config = small_runs.config("fullmatch", "data.labels=none")
    return small_runs.finish(start(config, RunFolder.planned("own", out), source)).folder


def test_once_and_with_a_temperature(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    found = honest(folder, own)
    result = json.loads(folder.result.read_text())
    assert result["honest"] == found and found is not None and found["labels"] == 60
    assert "calibration" in result
    for part in (folder.path / "folds").iterdir():
        part.unlink()
    assert honest(folder, own) == found  # nothing is trained again
    assert list((folder.path / "folds").iterdir()) == []


def test_surer_than_right_is_noted(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    lines = [{"step": step, "loss": 1.0, "selected": 1.0} for step in range(1, 9)]
    folder.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    honest(folder, own)  # a few steps cannot have taught it much
    result = json.loads(folder.result.read_text())
    assert [found["kind"] for found in result["health"]] == ["over-confidence"]
    assert (
        f"only {100 * result['honest']['accuracy']:.0f} % of held-out"
        in result["health"][0]["words"]
    )


def test_without_unlabeled_pictures_it_learns_from_no_mistakes(
    tmp_path: Path, own: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    labeled = (own.labels >= 0).nonzero().flatten()
    few = replace(own, images=TensorStore(own.images.read(labeled)), labels=own.labels[labeled])
    folder = trained(few, tmp_path / "run")
    lines = [{"step": step, "loss": 1.0, "selected": 1.0} for step in range(1, 9)]
    folder.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    honest(folder, few)
    assert json.loads(folder.result.read_text())["health"] == []
    assert "unlabeled" not in capsys.readouterr().out


def test_a_test_answers_better(tmp_path: Path, own: Source) -> None:
    digits = small_runs.digits()
    tested = replace(own, test=digits.test, test_labels=digits.test_labels)
    folder = trained(tested, tmp_path / "run")
    assert honest(folder, tested) is None
    assert "honest" not in json.loads(folder.result.read_text())


def test_lines_where_no_bar_can_be_drawn(
    tmp_path: Path, own: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    honest(trained(own, tmp_path / "run"), own)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("estimate ")]
    assert [line.split()[1] for line in lines] == ["1/5", "2/5", "3/5", "4/5"]
    assert all(line.endswith(" s left") for line in lines)


def test_other_labels_than_the_run_had(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    labels = own.labels.clone()
    labels[60:70] = small_runs.digits().labels[60:70]
    with pytest.raises(UserError, match=r"not what they were when .*run was trained; put"):
        honest(folder, replace(own, labels=labels))
    result = folder.read_result()
    del result["data_hash"]  # as older runs
    folder.write_result(result)
    found = honest(folder, replace(own, labels=labels))
    assert found is not None and found["labels"] == 70
