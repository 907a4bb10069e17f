"""Results in sentences, the same in terminal, report and card."""

from dataclasses import replace

import pytest

from fullmatch.evaluation.wording import (
    capitalize,
    describe_comparison,
    describe_estimate,
    describe_gain,
    describe_not_measured,
    describe_open_set,
    describe_recall,
    describe_subject,
    describe_without_start,
    percent,
)
from fullmatch.storage.result import (
    Accuracy,
    Estimate,
    FinalScores,
    OpenSetScores,
    PairedComparison,
    RunResult,
    Verdict,
)

GAIN = PairedComparison(
    gain=1 / 3,
    interval=(0.204, 0.462),
    better=20,
    worse=0,
    p_value=0.001,
    verdict=Verdict.HELPED,
    images=60,
)
ESTIMATE = Estimate(
    accuracy=50 / 60,
    interval=(0.72, 0.91),
    held_out=60,
    labels=60,
    unlabeled=500,
    folds=5,
    repeats=2,
    steps=100,
    baseline=Accuracy(accuracy=0.5, interval=(0.4, 0.6)),
    gain=GAIN,
    per_class={"cat": 0.8, "dog": 0.9},
)
RESULT = RunResult(
    algorithm={"name": "fixmatch"},
    data="pets",
    classes=("cat", "dog"),
    labels=60,
    unlabeled=500,
    seed=0,
    steps=100,
    config_hash="",
    seconds=1.0,
    device="CPU",
    versions={},
    baseline=GAIN,
)


def test_estimate() -> None:
    assert describe_estimate(ESTIMATE) == (
        "Estimated accuracy 83.3 % (95 % interval 72 to 91; 60 labels, 5-fold cross-validation, "
        "repeated twice); labels-only baseline 50.0 %. The unlabeled pictures helped: +33.3 points "
        "(95 % interval +20.4 to +46.2)."
    )


def test_some_labels_are_never_held_out() -> None:
    some = replace(ESTIMATE, held_out=58, per_class={"cat": 0.8, "ship": None, "dög 2": None})
    text = describe_estimate(some)
    assert "; 58 of 60 labels, 5-fold cross-validation" in text
    assert text.endswith(". Not measured: ship, dög 2.")


def test_one_part_held_out() -> None:
    fifth = describe_estimate(replace(ESTIMATE, held_out=12, folds=1, repeats=1))
    assert "; 60 labels, 12 held out); labels-only" in fifth


def test_no_unlabeled_pictures() -> None:
    none = describe_estimate(replace(ESTIMATE, unlabeled=60))
    assert "There are no unlabeled pictures; using the labeled ones as unlabeled too helped" in none


def test_an_estimate_without_the_earlier_weights() -> None:
    assert describe_without_start(ESTIMATE) == ""
    started = replace(ESTIMATE, without_start=True)
    assert describe_estimate(started) == describe_estimate(ESTIMATE) + describe_without_start(
        started
    )
    assert "did not start from the earlier run's weights" in describe_without_start(started)


def test_many_classes_that_were_not_measured_are_counted() -> None:
    assert describe_not_measured(ESTIMATE) == ""
    many = replace(ESTIMATE, per_class={str(number): None for number in range(12)})
    assert describe_not_measured(many) == " Not measured: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more."


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (Verdict.HURT, "hurt: +33.3 points"),
        (Verdict.UNCLEAR, "made no clear difference: +33.3 points"),
        (Verdict.INVALID, "cannot be judged by a test set that was trained on: +33.3 points"),
    ],
)
def test_gain(verdict: Verdict, text: str) -> None:
    assert describe_gain(replace(GAIN, verdict=verdict)) == (
        f"{text} (95 % interval +20.4 to +46.2)"
    )


def test_subject() -> None:
    started = replace(RESULT, baseline=replace(GAIN, start="runs/first"))
    assert describe_subject(RESULT) == "The unlabeled images"
    assert describe_subject(RESULT, "pictures") == "The unlabeled pictures"
    assert describe_subject(started) == (
        "Together with the weights of the earlier run, the unlabeled images"
    )
    assert describe_subject(replace(RESULT, unlabeled=60)) == (
        "There are no unlabeled images; using the labeled ones as unlabeled too"
    )
    assert describe_subject(replace(started, unlabeled=60)) == (
        "There are no unlabeled images; together with the weights of the earlier run, using "
        "the labeled ones as unlabeled too"
    )


def test_comparison() -> None:
    assert describe_comparison(RESULT, "pictures") == (
        "The unlabeled pictures helped: +33.3 points (95 % interval +20.4 to +46.2) compared with "
        "the same network trained on the labels only."
    )
    estimated = replace(RESULT, baseline=None, estimate=ESTIMATE)
    assert describe_comparison(estimated) == describe_comparison(RESULT)
    assert describe_comparison(replace(RESULT, baseline=None)) == ""


def test_small_words() -> None:
    assert percent(0.12345) == "12.3 %"
    assert capitalize("the Net") == "The Net"
    assert capitalize("") == ""


def test_unknown_classes() -> None:
    assert describe_open_set((), None) == ""
    assert describe_open_set(("a", "b"), None) == "Unknown classes without test images: a, b."
    scores = OpenSetScores(images=1200, auroc=0.875)
    assert describe_open_set(("a", "b"), scores) == (
        "Unknown classes (a, b): 1,200 test images, separated from those of known classes with an "
        "AUROC of 87.5 % (50 % is chance)."
    )
    scores = replace(scores, balanced_accuracy=0.9, unknown_accuracy=0.25)
    sentence = describe_open_set(tuple(map(str, range(12))), scores)
    assert sentence.startswith("Unknown classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more): ")
    assert sentence.endswith(
        "(50 % is chance); 25.0 % of them are predicted as unknown, and the mean accuracy over all "
        "classes and unknown is 90.0 %."
    )


def test_recall_where_labels_or_test_images_are_uneven() -> None:
    scores = FinalScores(
        top1=0.9, ece=0.1, per_class=(0.95, 0.5), confusion=((95, 5), (5, 5)), interval=(0.8, 1.0)
    )
    expected = (
        "Classes are uneven: balanced accuracy (the mean of the classes' recalls) 72.5 %; lowest "
        "recall 50.0 %, of class dog."
    )
    assert describe_recall(replace(RESULT, teacher=scores)) == expected
    even = replace(scores, confusion=((5, 5), (5, 5)))
    assert describe_recall(replace(RESULT, teacher=even, labels_by_class=(30, 30))) == ""
    assert describe_recall(replace(RESULT, teacher=even, labels_by_class=(50, 10))) == expected
    measured = replace(RESULT, estimate=ESTIMATE, labels_by_class=(50, 10))
    text = describe_recall(measured)
    assert "balanced accuracy (the mean of the classes' recalls) 85.0 %" in text
    assert "lowest recall 80.0 %, of class cat" in text
    assert describe_recall(replace(RESULT, labels_by_class=(50, 10))) == ""
