"""What a report says in words: how good the model is, what went wrong, and what to do next."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from fullmatch.evaluation.wording import (
    capitalize,
    describe_comparison,
    describe_not_measured,
    describe_open_set,
    describe_recall,
    describe_without_start,
)
from fullmatch.pages.markup import Markup, join, tag
from fullmatch.reports.tables import PERCENT, format_interval, format_percent, sort_by_accuracy
from fullmatch.storage.result import Estimate, FinalScores
from fullmatch.storage.runs import StoredRun

WEAK = 0.05  # below the accuracy over all classes
HIGH_ECE = 0.1
MANY_IMAGES = 100  # with fewer test images, the calibration error is mostly noise


def render_headline(run: StoredRun) -> Markup:
    """The most important number, or why there is none."""
    if run.result is None:
        return tag("p", describe_progress(run), class_="answer")
    if run.scores is not None:
        return render_test_accuracy(run.scores, " of known classes" * bool(run.result.open_set))
    if run.estimate is not None:
        return render_estimate(run.estimate)
    unknown = "The accuracy is not known: there are no test pictures."
    return tag("p", run.result.estimate_missing or unknown, class_="answer")


def describe_progress(run: StoredRun) -> str:
    accuracies = run.accuracy("teacher").values
    so_far = f" Test accuracy so far: {format_percent(accuracies[-1])}." if len(accuracies) else ""
    return f"This run is not finished: step {run.steps_done:,} of {run.steps:,}.{so_far}"


def render_test_accuracy(scores: FinalScores, kind: str = "") -> Markup:
    """`kind` says which test pictures are meant, if not all of them."""
    return tag(
        "p",
        tag("strong", format_percent(scores.top1)),
        f" of {scores.images:,} test pictures{kind} are classified correctly "
        f"(95{PERCENT} interval {format_interval(scores.interval)}).",
        class_="answer",
    )


def render_estimate(estimate: Estimate) -> Markup:
    """Without test pictures: the accuracy on held-out labels."""
    return tag(
        "p",
        tag("strong", format_percent(estimate.accuracy)),
        f" of {estimate.held_out:,} held-out labels are predicted correctly in cross-validation "
        f"(95{PERCENT} interval {format_interval(estimate.interval)})."
        f"{describe_not_measured(estimate)}{describe_without_start(estimate)}",
        class_="answer",
    )


def describe_verdict(run: StoredRun) -> str:
    """Whether the unlabeled pictures helped; empty where there is nothing to compare."""
    if run.result is None:
        return ""
    if sentence := describe_comparison(run.result, "pictures"):
        return sentence.replace(" %", PERCENT)
    if run.algorithm != "supervised" and run.has_unlabeled:
        return (
            "It is not known whether the unlabeled pictures helped: there is no labels-only "
            "baseline to compare with."
        )
    return ""


def describe_classes(run: StoredRun) -> str:
    """Balanced accuracy and the weakest class; empty where classes are even."""
    return "" if run.result is None else describe_recall(run.result).replace(" %", PERCENT)


def describe_choice(run: StoredRun) -> str:
    """How the headline's number was chosen; empty without test pictures."""
    scores = run.scores
    if scores is None:
        return ""
    text = (
        "Measured on the averaged model at the end of training; nothing was chosen on the test "
        "pictures."
    )
    if scores.median_last_20 is not None and scores.best_chosen_on_test is not None:
        text += (
            f" Median of the last 20 evaluations: {format_percent(scores.median_last_20)}. Best "
            f"evaluation, chosen on the test pictures: "
            f"{format_percent(scores.best_chosen_on_test)}."
        )
    return text


def describe_unknown(run: StoredRun) -> str:
    """How well pictures of unknown classes are recognized; empty without such classes."""
    if run.result is None or run.scores is None:
        return ""
    sentence = describe_open_set(run.result.unknown_classes, run.result.open_set)
    return sentence.replace(" %", PERCENT).replace("test image", "test picture")


def render_health(run: StoredRun) -> Markup:
    """Problems noticed during training."""
    findings = run.result.health if run.result else ()
    if not findings:
        return Markup("")
    items = [
        tag("li", f"{capitalize(finding.message)}. Try ", *mark_flags(finding.advice), ".")
        for finding in findings
    ]
    return join([tag("h3", "Problems in training"), tag("ul", *items, class_="warn")])


def mark_flags(text: str) -> list[object]:
    """The text in pieces, with command-line flags as code."""
    pieces = re.split(r"(--\w+ [^\s,)]+)", text)
    return [tag("code", piece) if at % 2 else piece for at, piece in enumerate(pieces)]


class NextStep(NamedTuple):
    """A piece of advice, with the command that carries it out."""

    advice: str
    command: str = ""


def render_next_steps(run: StoredRun) -> Markup:
    """Advice, each with its command."""
    return tag("ol", *(tag("li", step.advice, render_command(step)) for step in next_steps(run)))


def render_command(step: NextStep) -> Markup:
    if not step.command:
        return Markup("")
    return tag("pre", tag("code", step.command), tabindex="0", aria_label="Command")


def next_steps(run: StoredRun) -> Iterator[NextStep]:
    folder = shlex.quote(str(run.path))
    if not run.finished:
        yield NextStep("Finish the training:", f"fullmatch resume {folder}")
    elif run.scores is None:
        aim = "Find out how good it is" if run.estimate is None else "Measure it better"
        advice = f"{aim}: put pictures that it has never seen into test/CLASS/, then run:"
        yield NextStep(advice, f"fullmatch evaluate {folder}")
    if weak := weak_classes(run):
        yield NextStep(f"Label more pictures of the weakest classes: {', '.join(weak)}.")
    if run.finished and not run.benchmark and run.has_unlabeled:
        advice = "See which pictures to label next:"
        yield NextStep(advice, f"fullmatch suggest {folder} -n 20")
    if run.scores is not None and run.scores.images >= MANY_IMAGES and run.scores.ece > HIGH_ECE:
        error = f"{100 * run.scores.ece:.0f} points"
        yield NextStep(f"Do not rely on its confidences: they are off by {error} on average.")
    if lacks_baseline(run):
        config = shlex.quote(str(run.folder.config))
        advice = "Find out whether the unlabeled pictures help:"
        yield NextStep(advice, f"fullmatch train --config {config} --baseline")
    if run.finished:
        yield NextStep("Use it on new pictures:", f"fullmatch predict {folder} PICTURES")
        yield NextStep("Compare it with another run:", f"fullmatch report {folder} OTHER")


def lacks_baseline(run: StoredRun) -> bool:
    """Whether a baseline would tell something that is not known yet."""
    compared = run.baseline is not None or run.estimate is not None
    useful = run.has_unlabeled and run.algorithm != "supervised"
    return run.finished and useful and not compared


def weak_classes(run: StoredRun, limit: int = 3) -> list[str]:
    """The classes clearly below the overall accuracy."""
    if run.scores is None:
        return []
    threshold = run.scores.top1 - WEAK
    return [
        run.classes[code]
        for code, accuracy in sort_by_accuracy(run.scores.per_class)[:limit]
        if accuracy is not None and accuracy < threshold
    ]


def render_notes(run: StoredRun) -> Markup:
    notes = run.result.notes if run.result else ()
    return tag("ul", *(tag("li", note) for note in notes)) if notes else Markup("")
