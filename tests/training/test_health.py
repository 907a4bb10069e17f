"""Findings about a run and their advice; a healthy run has none."""

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

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
from fullmatch.core import Algorithm, FallingLimit, SpecLike, Task
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import HealthFinding
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.health import HealthMonitor, RunContext, TunableSettings, assess
from tests import small_runs

STEPS = 100
TEN_CLASSES = RunContext(num_classes=10, steps=STEPS)
TWO_CLASSES = RunContext(num_classes=2, steps=STEPS)


def log(*, test_accuracy: float | None = None, **metrics: float) -> list[LogRecord]:
    """The log of a healthy run, with these metrics instead."""
    healthy = {"loss": 1.0, "selected": 0.7, "largest_class_share": 0.2}
    evaluation = {} if test_accuracy is None else {"teacher": {"top1": test_accuracy}}
    return [
        LogRecord(step, healthy | metrics, evaluation=evaluation)
        for step in range(10, STEPS + 1, 10)
    ]


def kinds(findings: Sequence[HealthFinding]) -> list[str]:
    return [finding.kind for finding in findings]


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        (log(selected=0.0), "nothing selected"),
        (log(largest_class_share=0.9), "one class takes all"),
        (log(loss=math.nan), "NaN loss"),
        (log(loss=math.inf), "NaN loss"),
        (log(selected=0.9, test_accuracy=0.4), "over-confidence"),
    ],
)
def test_each_kind_of_finding(records: list[LogRecord], kind: str) -> None:
    (finding,) = assess(records, TEN_CLASSES)
    assert finding.kind == kind
    assert "--" in finding.advice


def test_what_is_not_in_the_log() -> None:
    assert kinds(assess(log(), TEN_CLASSES, accuracy=0.3)) == ["over-confidence"]
    assert kinds(assess(log(), replace(TEN_CLASSES, outlier_share=0.5))) == ["outliers"]
    for clip, lower in ((0.0, "1"), (3.0, "1"), (0.5, "0.05")):
        context = replace(TEN_CLASSES, settings=TunableSettings(clip=clip))
        (finding,) = assess(log(loss=math.nan), context)
        assert finding.advice.endswith(f"or --set optimizer.clip={lower}")
    assert assess(log(), replace(TEN_CLASSES, outlier_share=0.01), accuracy=0.8) == []


@pytest.mark.parametrize(("share", "expected"), [(0.19, []), (0.2, ["outliers"])])
def test_a_method_for_unknown_pictures_is_suggested_once_there_are_many(
    share: float, expected: list[str]
) -> None:
    findings = assess(log(), replace(TEN_CLASSES, outlier_share=share))
    assert kinds(findings) == expected
    assert all("--algorithm iomatch" in finding.advice for finding in findings)
    for name in ("iomatch", "full-iomatch"):
        settings = TunableSettings.of(algorithm(name), rate=0.03, clip=0.0)
        assert settings.open_set
        context = replace(TEN_CLASSES, outlier_share=share, settings=settings)
        assert assess(log(), context) == []


TROUBLE = {
    "nothing selected": log(selected=0.0),
    "one class takes all": log(largest_class_share=0.9),
    "over-confidence": log(selected=0.9, test_accuracy=0.4),
}


def advice(spec: SpecLike, kind: str) -> str:
    settings = TunableSettings.of(spec, rate=0.003, clip=0.0)
    (finding,) = assess(TROUBLE[kind], replace(TEN_CLASSES, settings=settings))
    assert finding.kind == kind
    return finding.advice


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("kind", TROUBLE)
def test_advice_can_be_followed(name: str, kind: str) -> None:
    """Settings exist and change as the advice says; another algorithm is really another one."""
    spec = algorithm(name)
    if isinstance(spec, UPSOffline):
        spec = UPSOffline(choice="a file")
    text = advice(spec, kind)
    now = resolve(algorithm=name, assignments=["optimizer.rate=0.003"])
    pattern = r"a (lower|higher|smaller) [\w ]+ \(--set ([\w.]+)=([^)]+)\)"
    changes = re.findall(pattern, text)
    assert len(changes) == text.count("--set")
    for change, setting, value in changes:
        then = resolve(algorithm=name, assignments=[f"{setting}={value}"])
        before, after = (operator.attrgetter(setting)(config) for config in (now, then))
        assert (after > before) is (change == "higher")
        assert after != before
    for other in re.findall(r"--algorithm ([\w-]+)", text):
        assert type(algorithm(other)) is not type(spec)


@pytest.mark.parametrize(
    ("spec", "kind", "words"),
    [
        (FixMatch(), "nothing selected", "threshold=0.8)"),
        (FixMatch(threshold=0.5), "nothing selected", "threshold=0.42)"),
        (FixMatch(), "over-confidence", "threshold=0.98), a smaller weight"),
        (FixMatch(threshold=0.5, coefficient=3.0), "over-confidence", "threshold=0.8)"),
        (FixMatch(coefficient=3.0), "over-confidence", "coefficient=1.5)"),
        (
            FixMatch(),
            "one class takes all",
            "fullflex), a lower learning rate (--set optimizer.rate=0.001)",
        ),
    ],
)
def test_advice_starts_from_the_current_settings(spec: FixMatch, kind: str, words: str) -> None:
    assert words in advice(spec, kind)


@dataclass(frozen=True)
class PlainSpec:
    ratio: ClassVar[int] = 1

    def build(self, task: Task) -> Algorithm:
        return Algorithm()


def test_advice_omits_settings_that_a_method_does_not_have() -> None:
    spec: SpecLike
    for spec in (Dash(), SoftMatch(), FreeMatch(threshold=0.95)):
        assert "algorithm.threshold" not in advice(spec, "nothing selected")
        assert "algorithm.threshold" not in advice(spec, "over-confidence")
    for spec in (FlexMatch(), full(FlexMatch()), FreeMatch(), UPS()):
        assert "fullflex" not in advice(spec, "one class takes all")
    assert advice(FreeMatch(), "nothing selected") == "more steps or more labels"
    assert "higher" not in advice(FixMatch(threshold=1.0), "over-confidence")
    assert "lower threshold" not in advice(FixMatch(threshold=0.0), "nothing selected")
    assert advice(PlainSpec(), "over-confidence") == "more labels"


def test_a_first_round_selects_nothing_by_intent() -> None:
    first, later = (
        replace(TEN_CLASSES, settings=TunableSettings.of(UPSOffline(choice=choice), 0.03, 0.0))
        for choice in ("", "a file")
    )
    assert assess(log(selected=0.0), first) == []
    assert kinds(assess(log(selected=0.0), later)) == ["nothing selected"]


def test_a_run_passes_its_settings(tmp_path: Path) -> None:
    run = small_runs.begin(small_runs.config("flexmatch"), tmp_path / "run")
    assert run.monitor.context.settings == TunableSettings(thresholds="per class")


def test_without_unlabeled_pictures() -> None:
    context = replace(TEN_CLASSES, has_unlabeled=False)
    for records in (log(selected=0.0), log(largest_class_share=0.9)):
        assert assess(records, context, accuracy=0.3) == []
    assert kinds(assess(log(loss=math.nan), context)) == ["NaN loss"]


def test_a_run_with_labels_only_has_no_findings_about_unlabeled_pictures(tmp_path: Path) -> None:
    source = replace(small_runs.digits(), benchmark=False)
    for labels, silent in ((200, True), (40, False)):
        config = small_runs.config("fullmatch", "training.log_every=1", labels=labels)
        folder = RunFolder.planned("small", tmp_path / str(labels))
        run = small_runs.finish(start(config, folder, source))
        findings = assess(log(selected=0.0), run.monitor.context, 0.1)
        assert (findings == []) == silent


def test_uneven_classes_are_not_a_collapse() -> None:
    records = log(largest_class_share=0.9)
    assert assess(records, replace(TWO_CLASSES, largest_prior=0.9)) == []
    assert kinds(assess(records, TWO_CLASSES)) == ["one class takes all"]


def test_a_few_selected_images_are_not_a_collapse() -> None:
    assert assess(log(largest_class_share=0.9, selected=0.05), TEN_CLASSES) == []


def test_the_first_steps_are_not_judged() -> None:
    assert assess([], TEN_CLASSES) == []
    assert assess(log(selected=0.0)[:2], TEN_CLASSES) == []
    assert assess(log(selected=0.0), replace(TEN_CLASSES, steps=100 * STEPS)) == []


def test_methods_without_pseudo_labels() -> None:
    assert assess([LogRecord(step, {"loss": 1.0}) for step in range(STEPS)], TEN_CLASSES) == []


def test_each_kind_is_reported_once() -> None:
    monitor = HealthMonitor(TEN_CLASSES)
    findings = [finding for record in log(selected=0.0) for finding in monitor.check(record)]
    assert kinds(findings) == ["nothing selected"]
    assert kinds(monitor.check(LogRecord(STEPS, {"loss": math.nan}))) == ["NaN loss"]
    assert monitor.reported == {"nothing selected", "NaN loss"}


def test_findings_can_be_marked_as_reported() -> None:
    records = log(largest_class_share=0.9)
    context = replace(TWO_CLASSES, largest_prior=0.9, outlier_share=0.5)
    monitor = HealthMonitor(context)
    findings = [finding for record in records for finding in monitor.check(record)]
    assert kinds(findings) == ["outliers"]  # uneven labels explain the large class
    final = assess(records, context, accuracy=0.3)
    assert kinds(final) == ["outliers", "over-confidence"]
    other = HealthMonitor(context)
    other.mark_reported(final)
    assert [finding for record in records for finding in other.check(record)] == []


def test_share_of_the_largest_class() -> None:
    probs = torch.eye(3)[[0, 0, 1, 2]]
    label = probs.argmax(dim=1)
    pseudo = PseudoLabels(probs, label, label, torch.tensor([1.0, 1.0, 1.0, 0.0]))
    top, bottom = usage_metrics(pseudo, torch.full((4,), -1))["largest_class_share"]
    assert float(top / bottom) == pytest.approx(2 / 3)


def test_a_healthy_run_has_no_findings(tmp_path: Path) -> None:
    steps = 150
    settings = (f"training.steps={steps}", "training.batch=20", "training.ratio=3",
                "training.log_every=10", "training.evaluate_every=50")  # fmt: skip
    config = small_runs.config("fullmatch", *settings, labels=100)
    run = small_runs.finish(small_runs.begin(config, tmp_path / "run"))
    records = RunFolder(tmp_path / "run").read_records()
    assert any("largest_class_share" in record.metrics for record in records)
    context = RunContext(num_classes=10, steps=steps)
    monitor = HealthMonitor(context)
    assert [finding for record in records for finding in monitor.check(record)] == []
    assert run.result.teacher is not None
    assert assess(records, context, accuracy=run.result.teacher.top1) == []


def falling(rhos: Sequence[float]) -> list[LogRecord]:
    """The log of a run whose limit has these values, with the warm-up in the first three."""
    return [
        LogRecord(10 * (at + 1), {"loss": 1.0, "selected": 0.7, "rho": rho})
        for at, rho in enumerate(rhos)
    ]


@pytest.mark.parametrize(
    ("rhos", "start", "findings"),
    [
        ((2.0, 1.0, 0.3, 0.05, 0.05), 30, ["limit at its floor"]),
        ((2.0, 1.0, 0.3, 0.05, 0.05), 28, ["limit at its floor"]),
        ((2.0, 1.0, 0.3, 0.2, 0.05, 0.05), 30, []),
        ((2.0, 1.0, 0.3, 0.2, 0.05, 0.05), 11, []),
        ((0.05, 0.05, 0.05), 1, ["limit at its floor"]),
        ((2.0, 1.0, 0.3), 30, []),
    ],
)
def test_a_limit_that_starts_at_its_floor(
    rhos: tuple[float, ...], start: int, findings: list[str]
) -> None:
    context = replace(TEN_CLASSES, limit=FallingLimit(start, 0.05, early=True))
    assert kinds(assess(falling(rhos), context)) == findings
    monitor = HealthMonitor(context)
    reported = [found for record in falling(rhos) for found in monitor.check(record)]
    assert kinds(reported) == findings
    assert not any("measured" in finding.advice for finding in reported)


def test_a_limit_measured_late_can_be_measured_early() -> None:
    limit = Dash(measured="end", rho_min=0.3).falling_limit(1000)
    assert limit == FallingLimit(100, 0.3, early=False)
    context = replace(TEN_CLASSES, limit=limit._replace(start=10))
    (finding,) = assess(falling((2.0, 0.3, 0.3)), context)
    assert "its floor of 0.3" in finding.message
    assert "--set algorithm.measured=start" in finding.advice
    assert "--set algorithm.rho_min=0.06" in finding.advice


def test_a_later_window_of_a_log_is_not_its_start() -> None:
    """A monitor keeps the latest records: a limit at its floor late in the run is expected."""
    context = replace(TEN_CLASSES, limit=FallingLimit(10, 0.05, early=True))
    monitor = HealthMonitor(context)
    rhos = (2.0, 1.0, 0.5, 0.3, 0.2, 0.1, *[0.05] * 20)
    assert [found for record in falling(rhos) for found in monitor.check(record)] == []
