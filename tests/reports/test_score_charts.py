"""Charts of scores work with any class names and any number of classes."""

from pathlib import Path

import numpy as np

from fullmatch.reports.score_charts import (
    MOST_NAMES,
    draw_class_recall,
    draw_confusion,
    draw_reliability,
)
from fullmatch.storage.predictions import Predictions
from fullmatch.storage.runs import read_run
from tests.reports.svg import check_chart, parse_svg, texts
from tests.written_runs import ODD, write_run


def test_every_chart_of_a_trained_run(digits_run: Path) -> None:
    run = read_run(digits_run)
    assert run.predictions is not None
    assert run.scores is not None
    check_chart(draw_confusion(run.scores.confusion, run.classes))
    check_chart(draw_reliability(run.predictions, run.scores.ece))
    check_chart(draw_class_recall(run.scores.per_class, run.classes, run.scores.top1))


def test_confusion_shows_the_counts() -> None:
    chart = draw_confusion([[7, 2], [0, 9]], ["cat", "dog"])
    assert sorted(texts(parse_svg(chart))) == sorted(
        ["cat", "dog", "cat", "dog", "7", "2", "9", "predicted", "true"]
    )
    assert chart.summary == "2 classes; 88.9 % of the pictures are on the diagonal."


def test_class_names_of_any_kind(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", classes=ODD))
    assert run.scores is not None
    labels = texts(parse_svg(draw_confusion(run.scores.confusion, run.classes)))
    assert {"ähre 麦", "<script>ale…", '$x_1$ & "qu…'} <= set(labels)
    check_chart(draw_class_recall(run.scores.per_class, run.classes, 0.6))


def test_many_classes_have_no_names() -> None:
    counts = np.eye(300, dtype=int).tolist()
    chart = draw_confusion(counts, [f"class {n}" for n in range(300)])
    assert texts(parse_svg(chart)) == ["predicted", "true"]
    assert len(chart.to_svg("x")) < 300_000
    bars = draw_class_recall([n / 300 for n in range(300)], [str(n) for n in range(300)], 0.5)
    assert bars is not None
    assert bars.summary.startswith("From 0 with 0.0 %")
    assert sum(text.isdigit() for text in texts(parse_svg(bars))) == MOST_NAMES


def test_classes_without_test_images_have_no_bar() -> None:
    assert draw_class_recall([None, None], ["a", "b"], 0.5) is None
    bars = draw_class_recall([None, 0.5], ["a", "b"], 0.5)
    assert "b" in texts(parse_svg(bars))
    assert "a" not in texts(parse_svg(bars))


def make_predictions(count: int) -> Predictions:
    """Half of the images at 0.6 and half at 0.9, all of the true class 0."""
    confidence = np.repeat([0.6, 0.9], count // 2)
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    return Predictions(probabilities, np.zeros(count, dtype=np.int64))


def test_calibration_summary() -> None:
    chart = draw_reliability(make_predictions(20), 0.25)
    assert chart is not None
    assert chart.summary == (
        "Mean confidence 75.0 %, accuracy 100.0 %; expected calibration error 25.0 points."
    )


def test_few_images_give_no_calibration_chart() -> None:
    assert draw_reliability(make_predictions(8), 0.25) is None
