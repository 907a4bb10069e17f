"""A finished run from Python: its result, and its model on pictures of every kind."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import fullmatch
from fullmatch.errors import UserError
from fullmatch.storage.run_folder import RunFolder
from tests.served import digit_files, digits_run


@pytest.fixture(scope="module")
def model() -> fullmatch.FinishedRun:
    return fullmatch.load(digits_run())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return digit_files(tmp_path_factory.mktemp("digits"), 4)


def test_paths_images_and_arrays_are_the_same_picture(
    model: fullmatch.FinishedRun, files: dict[str, np.ndarray]
) -> None:
    by_path = model.predict(list(files))
    assert [each.path for each in by_path] == list(files)
    pixels = np.stack(list(files.values()))  # (4, 1, 8, 8)
    images = [Image.fromarray(each[0]) for each in pixels]
    for given in (map(Path, files), images, pixels, pixels[:, 0], list(pixels[:, 0])):
        predictions = model.predict(given)
        assert predictions.labels == by_path.labels
        assert [p.confidence for p in predictions] == [p.confidence for p in by_path]
    first = next(iter(files))
    for one in (first, Path(first), images[0], pixels[0], pixels[0, 0]):
        assert model.predict(one).labels == by_path.labels[:1]
    assert set(model.predict(Path(first).parent).labels) == set(by_path.labels)


def test_probabilities(model: fullmatch.FinishedRun, files: dict[str, np.ndarray]) -> None:
    probs = model.predict_proba(list(files))
    assert probs.shape == (4, 10)
    assert np.allclose(probs.sum(axis=1), 1, atol=1e-5)
    predictions = model.predict(list(files))
    assert [model.classes[code] for code in probs.argmax(axis=1)] == predictions.labels
    assert np.allclose(probs.max(axis=1), [each.confidence for each in predictions])
    with pytest.raises(UserError, match=r"nothing\.png|no picture"):
        model.predict_proba("nothing.png")
    with pytest.raises(UserError, match="cannot be read; leave it out"):
        model.predict_proba(__file__)


def test_unsure_ones_are_flagged(
    model: fullmatch.FinishedRun, files: dict[str, np.ndarray]
) -> None:
    assert {each.flag for each in model.predict(list(files), unsure=1)} <= {"unsure", "unlike"}
    unreadable = fullmatch.predict(model.folder, [__file__])
    assert unreadable.labels == [None]
    assert unreadable[0].confidence == 0


def test_result_and_metrics(model: fullmatch.FinishedRun) -> None:
    records = RunFolder(model.folder).read_records()
    frame = model.metrics()
    assert list(frame.index) == [record.step for record in records]
    assert list(frame["loss"]) == [record.metrics["loss"] for record in records]
    last = records[-1].evaluation["teacher"]["top1"]
    assert frame["teacher.top1"].iloc[-1] == last == model.accuracy
    assert model.interval is not None
    assert model.interval[0] < last < model.interval[1]


def test_without_pandas(model: fullmatch.FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[notebook\]'"):
        model.metrics()
    assert model.records


def test_in_a_notebook(model: fullmatch.FinishedRun, files: dict[str, np.ndarray]) -> None:
    assert repr(model).startswith(f"<FinishedRun {model.folder}: test accuracy ")
    text = model._repr_html_()
    assert "<strong>Test accuracy" in text
    assert str(model.folder) in text
    assert "fullmatch on digits: 40 labels, 40 steps" in text
    predictions = model.predict(list(files))
    table = predictions._repr_html_()
    assert table.count("<tr>") == 5
    assert list(predictions.to_frame()["label"]) == predictions.labels


def test_evaluate(model: fullmatch.FinishedRun) -> None:
    evaluation = fullmatch.evaluate(model.folder)
    assert evaluation.scores.top1 == model.accuracy
    text = evaluation._repr_html_()
    assert "500 test images of digits" in text
    assert text.count("<tr>") == 11
    assert "# Classifier for digits" in model.card()


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run folder"):
        fullmatch.load(tmp_path)
