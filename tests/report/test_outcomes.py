"""Drawings of the test images that stand any class name and any number of classes."""

from pathlib import Path

import numpy as np

from fullmatch.report import outcomes
from fullmatch.storage.runs import Predictions, read_run
from tests.report.svg import check, parsed, texts
from tests.report.written import ODD, write_run


def test_every_drawing_of_a_real_run(digits_run: Path) -> None:
    run = read_run(digits_run)
    assert run.predictions is not None
    check(outcomes.confusion(run.scores["confusion"], run.classes))
    check(outcomes.reliability(run.predictions, run.scores["ece"]))
    check(outcomes.per_class(run.scores["per_class"], run.classes, run.scores["last"]))


def test_confusion_shows_the_counts() -> None:
    drawing = outcomes.confusion([[7, 2], [0, 9]], ["cat", "dog"])
    assert sorted(texts(parsed(drawing))) == sorted(
        ["cat", "dog", "cat", "dog", "7", "2", "9", "predicted", "true"]
    )
    assert drawing.words == "2 classes; 88.9 % of the images lie on the diagonal."


def test_class_names_of_any_kind(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", classes=ODD))
    found = texts(parsed(outcomes.confusion(run.scores["confusion"], run.classes)))
    assert {"ähre 麦", "<script>ale…", '$x_1$ & "qu…'} <= set(found)
    check(outcomes.per_class(run.scores["per_class"], run.classes, 0.6))


def test_many_classes_have_no_room_for_names() -> None:
    counts = np.eye(300, dtype=int).tolist()
    drawing = outcomes.confusion(counts, [f"class {n}" for n in range(300)])
    assert texts(parsed(drawing)) == ["predicted", "true"]
    assert len(drawing.svg("x")) < 300_000
    bars = outcomes.per_class([n / 300 for n in range(300)], [str(n) for n in range(300)], 0.5)
    assert bars is not None and bars.words.startswith("From 0 with 0.0 %")
    assert sum(text.isdigit() for text in texts(parsed(bars))) == outcomes.NAMED


def test_classes_without_test_images_have_no_bar() -> None:
    assert outcomes.per_class([None, None], ["a", "b"], 0.5) is None
    bars = outcomes.per_class([None, 0.5], ["a", "b"], 0.5)
    assert "b" in texts(parsed(bars)) and "a" not in texts(parsed(bars))


def made(count: int) -> Predictions:
    """Half of the images at 0.6 and half at 0.9, all of the true class 0."""
    sure = np.repeat([0.6, 0.9], count // 2)
    return Predictions(np.stack([sure, 1 - sure], axis=1), np.zeros(count, dtype=np.int64))


def test_calibration_in_words() -> None:
    drawing = outcomes.reliability(made(20), 0.25)
    assert drawing is not None
    assert "75.0 % sure and is right 100.0 % of the time" in drawing.words
    assert "25.0 points" in drawing.words


def test_few_images_say_nothing_of_calibration() -> None:
    assert outcomes.reliability(made(8), 0.25) is None
