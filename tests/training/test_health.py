"""Trouble is said with its remedy; a healthy run hears nothing."""

import math
import operator
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fullmatch.algorithms import (
    UPS,
    Dash,
    FixMatch,
    FlexMatch,
    FreeMatch,
    SoftMatch,
    UPSOffline,
    algorithm,
    full,
    names,
)
from fullmatch.algorithms.pseudo_labeling import PseudoLabels, usage_metrics
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.health import Finding, Knobs, Watch, assess
from tests import small_runs

STEPS = 100


def log(**metrics: Any) -> list[dict[str, Any]]:
    healthy = {"loss": 1.0, "selected": 0.7, "largest_class_share": 0.2}
    return [{"step": step, **healthy, **metrics} for step in range(10, STEPS + 1, 10)]


def kinds(findings: list[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


@pytest.mark.parametrize(
    "metrics,kind",
    [
        ({"selected": 0.0}, "nothing selected"),
        ({"largest_class_share": 0.9}, "one class takes all"),
        ({"loss": float("nan")}, "not a number"),
        ({"loss": float("inf")}, "not a number"),
        (
            {"selected": 0.9, "evaluation": {"teacher": {"top1": 0.4}}},
            "over-confidence",
        ),
    ],
)
def test_trouble_is_found(metrics: dict[str, Any], kind: str) -> None:
    (found,) = assess(log(**metrics), 10, steps=STEPS)
    assert found.kind == kind and "--" in found.knob


def test_what_only_the_caller_knows() -> None:
    assert kinds(assess(log(), 10, steps=STEPS, accuracy=0.3)) == ["over-confidence"]
    assert kinds(assess(log(), 10, steps=STEPS, foreign=0.5)) == ["foreign pictures"]
    for clip, lower in ((0.0, "1"), (3.0, "1"), (0.5, "0.05")):
        (found,) = assess(log(loss=math.nan), 10, steps=STEPS, knobs=Knobs(clip=clip))
        assert found.knob.endswith(f"or --set optimizer.clip={lower}")
    assert assess(log(), 10, steps=STEPS, accuracy=0.8, foreign=0.01) == []


TROUBLE: dict[str, dict[str, Any]] = {
    "nothing selected": {"selected": 0.0},
    "one class takes all": {"largest_class_share": 0.9},
    "over-confidence": {"selected": 0.9, "evaluation": {"teacher": {"top1": 0.4}}},
}


def advice(spec: object, kind: str) -> str:
    knobs = Knobs.of(spec, rate=0.003, clip=0.0)
    (found,) = assess(log(**TROUBLE[kind]), 10, steps=STEPS, knobs=knobs)
    assert found.kind == kind
    return found.knob


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("kind", TROUBLE)
def test_advice_can_be_followed(name: str, kind: str) -> None:
    """Settings are those of this algorithm and change as they say; other methods are others."""
    spec = algorithm(name)
    if isinstance(spec, UPSOffline):
        spec = UPSOffline(choice="a file")
    said = advice(spec, kind)
    now = resolve(algorithm=name, assignments=["optimizer.rate=0.003"])
    for change, where, value in re.findall(r"a (\w+) \w+ \(--set ([\w.]+)=([^)]+)\)", said):
        then = resolve(algorithm=name, assignments=[f"{where}={value}"])
        before, after = (operator.attrgetter(where)(config) for config in (now, then))
        assert after > before if change == "higher" else after < before
    for other in re.findall(r"--algorithm ([\w-]+)", said):
        assert type(algorithm(other)) is not type(spec)


@pytest.mark.parametrize(
    ("spec", "kind", "words"),
    [
        (FixMatch(), "nothing selected", "threshold=0.8)"),
        (FixMatch(threshold=0.5), "nothing selected", "threshold=0.42)"),
        (FixMatch(), "over-confidence", "threshold=0.98), a smaller weight"),
        (FixMatch(threshold=0.5, coefficient=3.0), "over-confidence", "threshold=0.8)"),
        (FixMatch(coefficient=3.0), "over-confidence", "coefficient=1.5)"),
        (FixMatch(), "one class takes all", "fullflex), a lower rate (--set optimizer.rate=0.001)"),
    ],
)
def test_advice_starts_from_what_is_set(spec: FixMatch, kind: str, words: str) -> None:
    assert words in advice(spec, kind)


def test_advice_leaves_out_what_the_method_has_not_or_has_already() -> None:
    for spec in (Dash(), SoftMatch(), FreeMatch(threshold=0.95)):
        assert "algorithm.threshold" not in advice(spec, "nothing selected")
        assert "algorithm.threshold" not in advice(spec, "over-confidence")
    for spec in (FlexMatch(), full(FlexMatch()), FreeMatch(), UPS()):
        assert "fullflex" not in advice(spec, "one class takes all")
    assert advice(FreeMatch(), "nothing selected") == "more steps or more labels"
    assert "higher" not in advice(FixMatch(threshold=1.0), "over-confidence")
    assert "lower threshold" not in advice(FixMatch(threshold=0.0), "nothing selected")
    assert advice(object(), "over-confidence") == "more labels"


def test_a_first_round_has_nothing_to_select() -> None:
    nothing = log(selected=0.0)
    first, later = (Knobs.of(UPSOffline(choice=choice), 0.03, 0.0) for choice in ("", "a file"))
    assert assess(nothing, 10, steps=STEPS, knobs=first) == []
    assert kinds(assess(nothing, 10, steps=STEPS, knobs=later)) == ["nothing selected"]


def test_a_run_knows_its_knobs(tmp_path: Path) -> None:
    run = small_runs.begin(small_runs.config("flexmatch"), tmp_path / "run")
    assert run.watch.knobs == Knobs(thresholds="per class")


def test_without_unlabeled_pictures_nothing_is_said_of_them() -> None:
    for metrics in ({"selected": 0.0}, {"largest_class_share": 0.9}):
        assert assess(log(**metrics), 10, steps=STEPS, accuracy=0.3, unlabeled=False) == []
    (found,) = assess(log(loss=float("nan")), 10, steps=STEPS, unlabeled=False)
    assert found.kind == "not a number"


def test_a_run_on_labels_alone_says_nothing_of_unlabeled_pictures(tmp_path: Path) -> None:
    source = replace(small_runs.digits(), benchmark=False)
    for labels, silent in ((200, True), (40, False)):
        config = small_runs.config("fullmatch", "training.log_every=1", labels=labels)
        folder = RunFolder.planned("small", tmp_path / str(labels))
        run = small_runs.finish(start(config, folder, source))
        assert (run.watch.standing(log(selected=0.0), 0.1) == []) == silent


def test_uneven_classes_are_no_collapse() -> None:
    lines = log(largest_class_share=0.9)
    assert assess(lines, 2, steps=STEPS, largest_prior=0.9) == []
    assert kinds(assess(lines, 2, steps=STEPS)) == ["one class takes all"]


def test_a_handful_in_use_is_no_collapse() -> None:
    assert assess(log(largest_class_share=0.9, selected=0.05), 10, steps=STEPS) == []


def test_patience_at_the_start() -> None:
    assert assess([], 10, steps=STEPS) == []
    assert assess(log(selected=0.0)[:2], 10, steps=STEPS) == []
    assert assess(log(selected=0.0), 10, steps=100 * STEPS) == []


def test_methods_without_pseudo_labels() -> None:
    assert assess([{"step": s, "loss": 1.0} for s in range(STEPS)], 10, steps=STEPS) == []


def test_each_finding_is_told_once() -> None:
    watch = Watch(10, steps=STEPS)
    told = [finding for record in log(selected=0.0) for finding in watch.news(record)]
    assert kinds(told) == ["nothing selected"]
    assert kinds(watch.news({"step": STEPS, "loss": float("nan")})) == ["not a number"]


def test_what_stands_at_the_end_and_was_not_told() -> None:
    watch = Watch(2, steps=STEPS, largest_prior=0.9, foreign=0.5)
    lines = log(largest_class_share=0.9)
    told = [finding for record in lines for finding in watch.news(record)]
    assert kinds(told) == ["foreign pictures"]  # and uneven labels explain the rest
    standing = watch.standing(lines, accuracy=0.3)
    assert kinds(standing) == ["foreign pictures", "over-confidence"]
    assert kinds(watch.untold(standing)) == ["over-confidence"]
    assert watch.untold(standing) == []


def test_share_of_the_largest_class() -> None:
    probs = torch.eye(3)[[0, 0, 1, 2]]
    label = probs.argmax(dim=1)
    pseudo = PseudoLabels(probs, label, label, torch.tensor([1.0, 1.0, 1.0, 0.0]))
    top, bottom = usage_metrics(pseudo, torch.full((4,), -1))["largest_class_share"]
    assert float(top / bottom) == pytest.approx(2 / 3)


def test_silent_on_a_healthy_run(tmp_path: Path) -> None:
    steps = 150
    settings = (f"training.steps={steps}", "training.batch=20", "training.ratio=3",
                "training.log_every=10", "training.evaluate_every=50")  # fmt: skip
    config = small_runs.config("fullmatch", *settings, labels=100)
    run = small_runs.finish(small_runs.begin(config, tmp_path / "run"))
    records = RunFolder(tmp_path / "run").records()
    assert any("largest_class_share" in record for record in records)
    watch = Watch(10, steps=steps)
    assert [finding for record in records for finding in watch.news(record)] == []
    assert assess(records, 10, steps=steps, accuracy=run.result["teacher"]["last"]) == []
