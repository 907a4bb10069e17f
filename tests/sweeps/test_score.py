"""What runs are compared by."""

from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.run_folder import RunFolder
from fullmatch.sweeps.score import ScoreKind, measure_run
from tests.served import copy_run, digits_run, pets_run
from tests.trained_runs import train_pets
from tests.written_runs import make_estimate, write_run


def test_an_estimate_is_the_score(tmp_path: Path) -> None:
    estimate = make_estimate()
    run = RunFolder(write_run(tmp_path / "run", test=False, estimate=estimate))
    score = measure_run(run, ScoreKind.HELD_OUT, benchmark=False)
    assert (score.score, score.images) == (estimate.accuracy, estimate.held_out)
    assert score.test is None


def test_own_test_pictures_play_no_part(tmp_path: Path) -> None:
    folder = RunFolder(copy_run(train_pets(), tmp_path / "run"))
    result = folder.read_result()
    assert result.teacher is not None
    before = folder.result.read_bytes()
    score = measure_run(folder, ScoreKind.HELD_OUT, benchmark=False)
    assert score.images == 6  # the labeled pictures; there are as many in the test
    assert score.score is not None
    assert score.test is None
    assert len(list(folder.estimate.glob("*-all.safetensors"))) == 10
    assert folder.result.read_bytes() == before
    assert measure_run(folder, ScoreKind.HELD_OUT, benchmark=False) == score


def test_test_accuracy_of_a_benchmark() -> None:
    folder = RunFolder(digits_run())
    teacher = folder.read_result().teacher
    assert teacher is not None
    score = measure_run(folder, ScoreKind.TEST, benchmark=True)
    assert (score.score, score.images, score.test) == (teacher.top1, 500, teacher.top1)


def test_labels_that_cannot_be_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(copy_run(pets_run(), tmp_path / "run"))
    draw = "fullmatch.experiment.cross_validation.draw_folds"
    monkeypatch.setattr(draw, lambda *_: [])
    with pytest.raises(UserError, match="no class has two labels"):
        measure_run(folder, ScoreKind.HELD_OUT, benchmark=False)
