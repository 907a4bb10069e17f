"""A finished run without a test set is estimated once; one with a test set is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.data import Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment.cross_validation import FoldOptions
from fullmatch.experiment.estimate import NOTHING_HELD_OUT, prepare_estimate, store_estimate
from fullmatch.experiment.start import start
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import RunResult
from fullmatch.storage.run_folder import RunFolder
from tests import small_runs


@pytest.fixture
def own() -> Source:
    """Sixty labeled digits and as many unlabeled ones, without a test set."""
    labels = small_runs.digits().labels.clone()
    labels[60:] = -1
    return replace(small_runs.digits(), labels=labels, test=None, test_labels=None, benchmark=False)


def trained(source: Source, out: Path) -> RunFolder:
    config = small_runs.config("fullmatch", "data.labels=none")
    return small_runs.finish(start(config, RunFolder.planned("own", out), source)).folder


def estimated(folder: RunFolder, source: Source) -> RunResult:
    validation = prepare_estimate(folder, source, folds=FoldOptions(least_steps=2))
    assert validation is not None
    for _ in validation.run():
        pass
    return store_estimate(folder, validation)


def log_full_selection(folder: RunFolder) -> None:
    """As if every unlabeled picture had been used all the time."""
    folder.metrics.unlink()
    for step in range(1, 9):
        folder.append_record(LogRecord(step, {"loss": 1.0, "selected": 1.0}))


def test_once_and_with_a_temperature(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    result = estimated(folder, own)
    assert folder.read_result() == result
    assert result.estimate is not None
    assert result.estimate.labels == 60
    assert result.calibration is not None
    assert result.calibration.images == 60
    assert {path.parent.name for path in folder.estimate.iterdir()} == {"estimate"}
    assert prepare_estimate(folder, own) is None  # nothing is trained again


def test_an_earlier_version_is_continued_in_its_folder(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    (folder.path / "folds").mkdir()
    result = estimated(RunFolder(folder.path), own)
    assert result.estimate is not None
    assert not (folder.path / "estimate").exists()
    assert (folder.path / "folds" / "held-out.safetensors").exists()


def test_overconfidence_is_reported(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    log_full_selection(folder)
    result = estimated(folder, own)  # a few steps do not teach it much
    (finding,) = result.health
    assert finding.kind == "over-confidence"
    assert result.estimate is not None
    assert f"only {100 * result.estimate.accuracy:.0f} % of held-out" in finding.message


def test_no_overconfidence_without_unlabeled_pictures(tmp_path: Path, own: Source) -> None:
    labeled = (own.labels >= 0).nonzero().flatten()
    few = replace(own, images=TensorStore(own.images.read(labeled)), labels=own.labels[labeled])
    folder = trained(few, tmp_path / "run")
    log_full_selection(folder)
    assert estimated(folder, few).health == ()


def test_a_test_set_needs_no_estimate(tmp_path: Path, own: Source) -> None:
    digits = small_runs.digits()
    tested = replace(own, test=digits.test, test_labels=digits.test_labels)
    folder = trained(tested, tmp_path / "run")
    assert prepare_estimate(folder, tested) is None
    assert folder.read_result().estimate is None


def test_nothing_can_be_held_out(tmp_path: Path, own: Source) -> None:
    labels = own.labels.clone()
    first = [labels.tolist().index(code) for code in range(10)]
    labels[:] = -1
    labels[first] = own.labels[first]
    single = replace(own, labels=labels)
    folder = trained(single, tmp_path / "run")
    result = estimated(folder, single)
    assert result.estimate is None
    assert result.estimate_missing == NOTHING_HELD_OUT
    assert prepare_estimate(folder, single) is None


def test_changed_labels_are_refused(tmp_path: Path, own: Source) -> None:
    folder = trained(own, tmp_path / "run")
    labels = own.labels.clone()
    labels[60:70] = small_runs.digits().labels[60:70]
    changed = replace(own, labels=labels)
    with pytest.raises(UserError, match=r"have changed since .*run was trained; restore them"):
        prepare_estimate(folder, changed)
    folder.write_result(replace(folder.read_result(), data_hash=""))  # as older runs
    result = estimated(folder, changed)
    assert result.estimate is not None
    assert result.estimate.labels == 70
