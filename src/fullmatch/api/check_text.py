"""The text of `fullmatch check`: what the data contains, its problems, and the training time."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from fullmatch.data.quality.data_check import DataCheck
from fullmatch.errors import pluralize
from fullmatch.experiment.plan_types import PlanOptions, TrainingPlan
from fullmatch.experiment.planning import PHOTO_SIDE, make_plan
from fullmatch.experiment.source_scan import blank_source

MAX_FILES = 3  # listed per finding on the screen; all of them are in the file
MAX_CLASSES = 10  # listed one by one


def plan_training(result: DataCheck, name: str, minutes: float | None = None) -> TrainingPlan:
    """What training would choose; a few steps are timed."""
    source = blank_source(
        result.classes,
        unlabeled=result.unlabeled,
        test=sum(result.test.values()),
        side=result.side,
        channels=result.channels,
    )
    return make_plan(source, name, PlanOptions(minutes=minutes))


def format_check(result: DataCheck, arguments: str, plan: TrainingPlan | None) -> Iterator[str]:
    """The lines of a report; `arguments` are those of the training command."""
    yield from _format_contents(result)
    yield from _format_findings(result)
    if plan is None:
        yield "Not ready: fix what is marked ✗, then check again. Your files were not changed."
        return
    yield from (f"- {note}" for note in plan.notes)
    duration = format_duration(plan.seconds)
    yield f"Ready: fullmatch train {arguments}   (about {duration} on this machine, estimated)"


def _format_contents(result: DataCheck) -> Iterator[str]:
    labeled = pluralize(sum(result.classes.values()), "picture")
    classes = pluralize(result.classes, "class", "classes")
    yield f"labeled    {labeled} of {classes}: {format_counts(result.classes)}"
    yield f"unlabeled  {pluralize(result.unlabeled, 'picture')}"
    if result.test:
        test = pluralize(sum(result.test.values()), "picture")
        yield f"test       {test}, used once, after training"
    elif max(result.classes.values(), default=0) > 1:
        yield "test       none: accuracy is estimated by cross-validation on the labeled pictures"
    else:
        yield "test       none, and no class has two labels: accuracy cannot be estimated"
    if result.sizes:
        (w, h), (width, height) = result.sizes["smallest"], result.sizes["largest"]
        kind = "gray" if result.channels == 1 else "color"
        largest = "" if (w, h) == (width, height) else f" to {width}x{height}"
        yield f"pictures   {w}x{h}{largest}, {kind}"
        yield f"compared   {describe_comparison(result)}"


def describe_comparison(result: DataCheck) -> str:
    """How pictures were compared with each other, and why not by features."""
    if result.network:
        return f"by features of {result.network}"
    if result.channels == 1 or result.side < PHOTO_SIDE:
        return f"by pixels: features need color pictures of at least {PHOTO_SIDE} pixels"
    return "by pixels: there are no pretrained weights on this machine"


def _format_findings(result: DataCheck) -> Iterator[str]:
    for finding in result.findings:
        yield f"{'✗' if finding.blocks_training else '!'} {finding.sentence()}"
        for file, note in zip_longest(finding.files[:MAX_FILES], finding.notes[:MAX_FILES]):
            yield f"    {file}{f': {note}' if note else ''}"
        if len(finding.files) > MAX_FILES:
            yield f"    and {len(finding.files) - MAX_FILES:,} more"


def format_counts(classes: Mapping[str, int]) -> str:
    """All classes with their counts, or only the smallest and the largest of many."""
    if len(classes) <= MAX_CLASSES:
        return ", ".join(f"{name} {count}" for name, count in classes.items()) or "-"
    smallest = min(classes, key=lambda name: classes[name])
    largest = max(classes, key=lambda name: classes[name])
    return f"fewest {classes[smallest]} ({smallest}), most {classes[largest]} ({largest})"


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds / 10)) * 10} seconds"
    return f"{round(seconds / 60)} minutes"
