"""A run with unknown classes: measured, resumed and evaluated exactly."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.open_set import recognize, score_open_set
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import resume, start
from fullmatch.inference.evaluate import evaluate_run
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import clean_folder, outlier, save
from tests.small_runs import (
    TINY,
    abandon_after,
    begin,
    config,
    finish,
    read_outputs,
    resume_run,
)

UNKNOWN = "data.unknown_classes=8,9"
CPU = torch.device("cpu")


def test_scores_of_a_method_that_predicts_unknown(tmp_path: Path) -> None:
    run = finish(begin(config("iomatch", UNKNOWN, labels=16), tmp_path / "run"))
    result = run.folder.read_result()
    assert result.classes == tuple("01234567")
    assert result.unknown_classes == ("8", "9")
    assert result.teacher is not None
    assert result.open_set is not None
    assert run.dataset.unknown_test is not None
    assert result.open_set.images == len(run.dataset.unknown_test)
    assert result.teacher.images + result.open_set.images == 50
    assert 0 <= result.open_set.auroc <= 1
    classifier = Classifier.load(run.folder.model)
    assert classifier.algorithm.predicts_unknown
    assert score_open_set(classifier, run.dataset, CPU) == result.open_set
    predictions = recognize(classifier, run.dataset.unknown_test, CPU)
    assert predictions.label is not None
    share = (predictions.label == 8).double().mean().item()
    assert result.open_set.unknown_accuracy == pytest.approx(share)


def test_scores_of_other_methods(tmp_path: Path) -> None:
    run = finish(begin(config("supervised", UNKNOWN, labels=16), tmp_path / "run"))
    scores = run.folder.read_result().open_set
    assert scores is not None
    assert scores.balanced_accuracy is None
    classifier = Classifier.load(run.folder.model)
    assert not classifier.algorithm.predicts_unknown
    assert score_open_set(classifier, run.dataset, CPU) == scores
    assert score_open_set(classifier, replace(run.dataset, unknown_test=None), CPU) is None


def test_nothing_is_reported_without_unknown_classes(tmp_path: Path) -> None:
    result = finish(begin(config("iomatch"), tmp_path / "run")).folder.read_result()
    assert result.unknown_classes == ()
    assert result.open_set is None


def test_an_interrupted_run_ends_the_same(tmp_path: Path) -> None:
    chosen = config("full-iomatch", UNKNOWN, labels=16)
    finish(begin(chosen, tmp_path / "straight"))
    abandon_after(begin(chosen, tmp_path / "broken"), 6)
    finish(resume_run(tmp_path / "broken"))
    assert read_outputs(tmp_path / "broken") == read_outputs(tmp_path / "straight")


@pytest.mark.parametrize("name", ["iomatch", "fullmatch"])
def test_evaluating_the_model_gives_the_result_of_the_run(name: str, tmp_path: Path) -> None:
    settings = (*TINY, UNKNOWN, "training.steps=3")
    run = start(
        resolve(algorithm=name, labels=16, assignments=settings),
        RunFolder.planned("x", tmp_path / "run"),
    )
    finish(run)
    result, evaluation = run.folder.read_result(), evaluate_run(run.folder)
    assert evaluation.unknown_classes == ("8", "9")
    assert evaluation.open_set == result.open_set
    assert result.teacher is not None
    assert evaluation.scores.top1 == result.teacher.top1
    trained = TrainedRun(run.folder.path)
    assert trained.source.unknown_classes == ("8", "9")


def test_own_pictures_with_a_test_folder_of_something_else(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "walls", labels=3, unlabeled=4, test=2)
    for number in range(3):
        save(outlier(number), folder / "test" / "other" / f"{number}.png")
    # Also among the unlabeled pictures: left out, as the test set must not be trained on.
    save(outlier(0), folder / "unlabeled" / "copy.png")
    settings = (*TINY, "data.size=16", "training.steps=3", "data.unknown_classes=other")
    chosen = resolve(data=str(folder), algorithm="iomatch", model="wrn-10-1", assignments=settings)
    run = start(chosen, RunFolder.planned("x", tmp_path / "run"))
    assert any("also in the test set: left out" in note for note in run.notes)
    finish(run)
    result = run.folder.read_result()
    assert result.unknown_classes == ("other",)
    assert result.open_set is not None
    assert result.open_set.images == 3
    assert evaluate_run(run.folder).open_set == result.open_set
    save(outlier(9), folder / "test" / "other" / "0.png")
    run.folder.result.unlink()
    with pytest.raises(UserError, match="have changed since"):
        resume(run.folder)
