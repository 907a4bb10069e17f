"""result.json: what is written is read back, older formats too, and damage is one line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch.storage.json_files import DamagedFile, to_json
from fullmatch.storage.result import (
    FORMAT,
    Accuracy,
    Calibration,
    Estimate,
    FinalScores,
    HealthFinding,
    PairedComparison,
    RunResult,
    Verdict,
    is_uneven,
    mean_recall,
    parse_result,
)
from fullmatch.storage.run_folder import RunFolder

SCORES = FinalScores(
    top1=0.5,
    top5=None,
    ece=0.1,
    per_class=(0.5, None),
    confusion=((1, 1), (0, 0)),
    interval=(0.1, 0.9),
    median_last_20=0.45,
    best_chosen_on_test=0.6,
)
COMPARISON = PairedComparison(
    gain=0.1,
    interval=(-0.1, 0.3),
    better=3,
    worse=1,
    p_value=0.6,
    verdict=Verdict.UNCLEAR,
    images=20,
    start="runs/first",
)
RESULT = RunResult(
    algorithm={"name": "fixmatch", "threshold": 0.95, "full": {"alpha": 1.0}},
    data="pets",
    classes=("cat", "dög"),
    labels=10,
    labels_by_class=(4, 6),
    unlabeled=50,
    seed=3,
    steps=100,
    split_hash="ab",
    config_hash="cd",
    data_hash="ef",
    test_hash="01",
    notes=("runs on CPU", "another note"),
    seconds=1.5,
    device="CPU",
    versions={"fullmatch": "0.2.0"},
    student=SCORES,
    teacher=SCORES,
    health=(HealthFinding(kind="leak", message="20 of 80 test pictures", advice="others"),),
    baseline=COMPARISON,
    estimate=Estimate(
        accuracy=0.8,
        interval=(0.6, 0.9),
        held_out=10,
        labels=10,
        unlabeled=50,
        folds=5,
        repeats=2,
        steps=33,
        without_start=True,
        baseline=Accuracy(accuracy=0.7, interval=(0.5, 0.8)),
        gain=COMPARISON,
        per_class={"cat": 0.8, "dög": None},
    ),
    calibration=Calibration(temperature=1.25, images=40, ece_before=0.2, ece_after=0.1, note="x"),
)
# As fullmatch 0.1 wrote it: a run on a benchmark, with its baseline.
BENCHMARK_1: dict[str, Any] = {
    "algorithm": {"name": "fixmatch", "threshold": 0.95},
    "data": "digits",
    "labels": 4,
    "labels_by_class": [2, 2],
    "unlabeled": 1297,
    "classes": ["0", "1"],
    "seed": 0,
    "steps": 60,
    "split": "2a93",
    "config": "9eb7",
    "data_hash": "356b",
    "test_hash": None,
    "notes": ["runs on CPU (1 thread): eager, fp32"],
    "seconds": 4.0,
    "device": "CPU (1 thread)",
    "versions": {"fullmatch": "0.1.0", "torch": "2.11.0", "python": "3.11.7"},
    "teacher": {
        "last": 0.3,
        "interval": [0.2, 0.4],
        "top1": 0.3,
        "top5": None,
        "ece": 0.15,
        "per_class": [0.4, 0.2],
        "confusion": [[4, 6], [8, 2]],
        "median_last_20": 0.28,
        "best_chosen_on_test": 0.3,
    },
    "health": [{"kind": "over-confidence", "words": "too sure", "knob": "more labels"}],
    "labels_only": {
        "gain": -0.014,
        "interval": [-0.05, 0.02],
        "better": 36,
        "worse": 43,
        "chance": 0.5,
        "verdict": "made no clear difference",
        "images": 500,
    },
}
# As fullmatch 0.1 wrote it: a run on a user's own pictures, with its estimate.
PICTURES_1: dict[str, Any] = {
    **{name: BENCHMARK_1[name] for name in BENCHMARK_1 if name not in ("teacher", "labels_only")},
    "data": "pictures",
    "split": None,
    "health": [],
    "honest": {
        "held_out": 12,
        "labels": 12,
        "unlabeled": 48,
        "parts": 5,
        "repeats": 2,
        "steps": 100,
        "anew": False,
        "accuracy": 1.0,
        "interval": [0.76, 1.0],
        "labels_only": {"accuracy": 0.9, "interval": [0.7, 1.0]},
        "gain": {**BENCHMARK_1["labels_only"], "images": 12},
        "per_class": {"brick": 1.0, "grass": None},
        "not_measured": ["grass"],
        "sentence": "Estimated accuracy 100.0 %",
    },
    "temperature": 1.5,
    "calibration": {"images": 12, "ece_before": 0.2, "ece_after": 0.1, "note": "a note"},
}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_round_trip(folder: RunFolder) -> None:
    folder.write_result(RESULT)
    assert folder.read_result() == RESULT
    small = replace(
        RESULT, student=None, teacher=None, baseline=None, estimate=None, calibration=None
    )
    folder.write_result(small)
    assert folder.read_result() == small
    assert json.loads(folder.result.read_text(encoding="utf-8"))["format"] == FORMAT


def test_balanced_accuracy_of_results_that_lack_it(folder: RunFolder) -> None:
    folder.write_result(RESULT)
    table = json.loads(folder.result.read_text(encoding="utf-8"))
    stored = table["teacher"].pop("balanced_accuracy")
    assert stored == mean_recall(table["teacher"]["per_class"])
    folder.result.write_text(json.dumps(table), encoding="utf-8")
    assert folder.read_result() == RESULT


def test_uneven_classes() -> None:
    assert not is_uneven([])
    assert not is_uneven([0, 4, 8])
    assert is_uneven([0, 4, 9])
    assert mean_recall([None, 0.5, 1.0]) == 0.75
    assert mean_recall([None]) is None


def test_benchmark_of_format_1() -> None:
    result = parse_result(BENCHMARK_1)
    assert result.format == FORMAT
    assert (result.split_hash, result.config_hash) == ("2a93", "9eb7")
    assert result.teacher is not None
    assert result.teacher.top1 == 0.3
    assert result.teacher.images == 20
    assert result.student is None
    assert result.teacher.median_last_20 == 0.28
    assert result.teacher.best_chosen_on_test == 0.3
    assert result.health == (
        HealthFinding(kind="over-confidence", message="too sure", advice="more labels"),
    )
    comparison = result.baseline
    assert comparison is not None
    assert comparison.p_value == 0.5
    assert comparison.verdict is Verdict.UNCLEAR
    assert comparison is result.comparison
    assert not result.lacks_estimate
    assert result.temperature is None
    assert parse_result(to_json(result)) == result


def test_own_pictures_of_format_1() -> None:
    result = parse_result(PICTURES_1)
    estimate = result.estimate
    assert estimate is not None
    assert estimate.folds == 5
    assert estimate.without_start is False
    assert estimate.baseline == Accuracy(accuracy=0.9, interval=(0.7, 1.0))
    assert estimate.gain.p_value == 0.5
    assert estimate.gain is result.comparison
    assert estimate.not_measured == ["grass"]
    assert result.calibration == Calibration(
        temperature=1.5, images=12, ece_before=0.2, ece_after=0.1, note="a note"
    )
    assert result.split_hash is None
    assert not result.lacks_estimate
    assert parse_result(to_json(result)) == result


def test_early_results_of_format_1() -> None:
    """Before hashes, counts by class and calibration were written."""
    later = ("labels_by_class", "unlabeled", "data_hash", "test_hash", "notes", "health", "split")
    early = {name: part for name, part in PICTURES_1.items() if name not in later}
    early |= {"honest": {"sentence": "no label can be held out"}, "temperature": 2.0}
    del early["calibration"]
    result = parse_result(early)
    assert result.estimate is None
    assert result.estimate_missing == "no label can be held out"
    assert result.temperature == 2.0
    assert result.data_hash == ""
    assert result.has_unlabeled
    invalid = BENCHMARK_1["labels_only"] | {
        "verdict": "cannot be judged by a test that was learned from",
        "start": "runs/first",
    }
    baseline = parse_result(BENCHMARK_1 | {"labels_only": invalid}).baseline
    assert baseline is not None
    assert baseline.verdict is Verdict.INVALID
    assert baseline.start == "runs/first"


def test_what_lacks_an_estimate() -> None:
    bare = replace(RESULT, teacher=None, estimate=None, baseline=None)
    assert bare.lacks_estimate
    assert bare.comparison is None
    for measured in (
        replace(bare, teacher=SCORES),
        replace(bare, estimate=RESULT.estimate),
        replace(bare, estimate_missing="no label can be held out"),
        replace(bare, algorithm={"name": "supervised"}),
    ):
        assert not measured.lacks_estimate


Change = Callable[[dict[str, Any]], None]


def changed(*path: str | int, to: Any) -> Change:
    def change(table: dict[str, Any]) -> None:
        part: Any = table
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = to

    return change


def removed(*path: str) -> Change:
    def change(table: dict[str, Any]) -> None:
        part = table
        for key in path[:-1]:
            part = part[key]
        del part[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed("seed", to="3"), "seed is not an integer"),
        (changed("labels", to=True), "labels is not an integer"),
        (changed("classes", to="cat"), "classes is not a list"),
        (changed("classes", to=["cat", 2]), "classes is not a text"),
        (changed("notes", to={}), "notes is not a list"),
        (changed("versions", to=[]), "versions is not a table"),
        (changed("health", 0, to="text"), "health is not a table"),
        (changed("baseline", "verdict", to="better"), "baseline.verdict is 'better'"),
        (changed("baseline", to=[]), "baseline is not a table"),
        (changed("estimate", to="none"), "estimate is not a table"),
        (changed("algorithm", to="fixmatch"), "algorithm is not a table"),
        (changed("algorithm", "name", to=3), "algorithm.name is missing"),
        (removed("algorithm", "name"), "algorithm.name is missing"),
        (removed("classes"), "classes is missing"),
        (removed("teacher", "interval"), "teacher.interval is missing"),
        (removed("estimate", "gain", "images"), "estimate.gain.images is missing"),
        (changed("teacher", "top1", to=float("nan")), "teacher.top1 is not finite"),
        (changed("estimate", "accuracy", to=float("inf")), "estimate.accuracy is not finite"),
        (changed("seconds", to=10**400), "seconds is not finite"),
        (changed("teacher", "interval", to=[0.1]), "teacher.interval has 1 entries, expected 2"),
        (
            changed("teacher", "per_class", to=[0.5]),
            "the scores of the teacher do not match the 2 classes",
        ),
        (
            changed("student", "confusion", to=[[1, 1]]),
            "the scores of the student do not match the 2 classes",
        ),
        (
            changed("student", "confusion", to=[[1, 1], [2]]),
            "the scores of the student do not match the 2 classes",
        ),
        (changed("labels_by_class", to=[10]), "labels_by_class does not fit 2 classes"),
    ],
)
def test_wrong_values_are_named(folder: RunFolder, change: Change, reason: str) -> None:
    table = to_json(RESULT)
    change(table)
    assert_damaged(folder, json.dumps(table), reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed("honest", to="accuracy"), "honest is not a table"),
        (changed("honest", to=5), "honest is not a table"),
        (changed("honest", "gain", to=None), "estimate.gain is not a table"),
        (changed("honest", "gain", to=[]), "estimate.gain is not a table"),
        (removed("honest", "parts"), "estimate.folds is missing"),
        (changed("honest", to={"sentence": 5}), "estimate_missing is not a text"),
        (changed("labels_only", to=3), "baseline is not a table"),
        (changed("health", to=[3]), "health is not a table"),
        (changed("temperature", to="hot"), "calibration.temperature is not a number"),
        (removed("config"), "config_hash is missing"),
    ],
)
def test_wrong_values_of_format_1_are_named(folder: RunFolder, change: Change, reason: str) -> None:
    table = json.loads(json.dumps(PICTURES_1))
    change(table)
    assert_damaged(folder, json.dumps(table), reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"seed"', "not JSON"),
        ("[]", "not a table"),
        ("[" * 100_000, "nested too deeply"),
        ('{"algorithm": ' * 100_000, "nested too deeply"),
    ],
)
def test_damage_is_one_line(folder: RunFolder, text: str, reason: str) -> None:
    assert_damaged(folder, text, reason)


def test_bytes_that_are_not_text(folder: RunFolder) -> None:
    folder.result.write_bytes(b"\xff{}")
    with pytest.raises(DamagedFile, match=r"result\.json is damaged \(not JSON\)"):
        folder.read_result()


def assert_damaged(folder: RunFolder, text: str, reason: str) -> None:
    folder.result.write_text(text, encoding="utf-8")
    with pytest.raises(DamagedFile) as error:
        folder.read_result()
    assert str(error.value) == (
        f"{folder.result} is damaged ({reason}); write it again with: "
        f"fullmatch resume {folder.path}"
    )
