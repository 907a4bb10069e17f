"""What a report says in words: how good the model is, what went wrong, and what to do next."""

import re
import shlex
from typing import Any

from fullmatch.pages.markup import Markup, join, tag
from fullmatch.report.tables import PERCENT, interval, percent, weakest_first
from fullmatch.storage.runs import Run, any_unlabeled

WEAK = 0.05  # below the accuracy over all classes
POORLY_CALIBRATED = 0.1
NAMED = 10  # classes that were not measured; more are counted
MANY = 100  # test images; of fewer, the calibration error is mostly chance


def headline(run: Run) -> Markup:
    """The answer, before anything else."""
    scores = run.scores
    if not run.finished:
        return tag("p", progress(run), class_="answer")
    if not scores:
        return estimate(run.estimate)
    images = sum(map(sum, scores["confusion"]))
    return tag(
        "p",
        tag("strong", percent(scores["last"])),
        f" of {images:,} test images are classified right "
        f"(95{PERCENT} interval {interval(scores['interval'])}).",
        class_="answer",
    )


def progress(run: Run) -> str:
    seen = run.accuracy("teacher").values
    so_far = f" Test accuracy so far: {percent(seen[-1])}." if len(seen) else ""
    return f"This run is not finished: step {run.steps_done:,} of {run.steps:,}.{so_far}"


def estimate(honest: dict[str, Any]) -> Markup:
    """Without test images: what held-out labels say, if anybody asked them."""
    if "accuracy" not in honest:
        return tag(
            "p", "There are no test images, so nobody knows how good it is.", class_="answer"
        )
    return tag(
        "p",
        tag("strong", percent(honest["accuracy"])),
        " of labeled images that were held out are classified right "
        f"(95{PERCENT} interval {interval(honest.get('interval'))})."
        f"{unmeasured(honest)}{anew(honest)}",
        class_="answer",
    )


def unmeasured(honest: dict[str, Any]) -> str:
    """The classes of which no label was held out, such as those with a single one; else nothing."""
    names = honest.get("not_measured") or []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f" Not measured: {', '.join(names[:NAMED])}{more}." if names else ""


def anew(honest: dict[str, Any]) -> str:
    """That an estimate of a run with earlier weights is made without them; else nothing."""
    if not honest.get("anew"):
        return ""
    return (
        " The models asked were trained anew: the weights of the earlier run, from which this one "
        "started, may have learned from the labels held out."
    )


def verdict(run: Run) -> str | None:
    """Did the unlabeled images help?"""
    # Image by image on test images, or else on held-out labels.
    found = run.result.get("labels_only") or run.estimate.get("gain")
    if found:
        low, high = (f"{100 * bound:+.1f}" for bound in found["interval"])
        return (
            f"{subject(run.result)} {found['verdict']}: {100 * found['gain']:+.1f} points against "
            f"the same network trained on the labels alone (95{PERCENT} interval {low} to {high})."
        )
    if run.finished and run.algorithm != "supervised" and any_unlabeled(run.result):
        return "Whether the unlabeled images helped is not known: there is no labels-only run."
    return None


def subject(result: dict[str, Any], images: str = "images") -> str:
    """What a verdict is about: all that a run had, and the labels alone had not."""
    # The labels alone start anew, since earlier weights may have seen unlabeled images.
    start = result.get("labels_only", {}).get("start")
    weights = "together with the weights of the earlier run, " if start else ""
    if any_unlabeled(result):
        return capital(f"{weights}the unlabeled {images}")
    return (
        f"There are no unlabeled {images}; {weights}learning from the labeled ones as if they were"
    )


def how_chosen(run: Run) -> str | None:
    scores = run.scores
    if not scores:
        return None
    words = "This is the averaged model at the end of training; no number was picked on the test."
    if "median_last_20" in scores:
        words += (
            f" Median of the last 20 evaluations: {percent(scores['median_last_20'])}; "
            f"the best one, which was chosen on the test images: "
            f"{percent(scores['best_chosen_on_test'])}."
        )
    return words


def health(run: Run) -> Markup:
    """What the run noticed about itself."""
    findings = run.result.get("health") or []
    if not findings:
        return Markup("")
    items = [
        tag("li", f"{capital(found['words'])}. Try ", *with_flags(found["knob"]), ".")
        for found in findings
    ]
    return join([tag("h3", "Noticed in training"), tag("ul", *items, class_="warn")])


def capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def with_flags(words: str) -> list[object]:
    """Plain words, with what is typed as it is typed."""
    parts = re.split(r"(--\w+ [^\s,)]+)", words)
    return [tag("code", part) if at % 2 else part for at, part in enumerate(parts)]


def next_steps(run: Run) -> Markup:
    """Advice with the commands that follow it."""
    folder = shlex.quote(str(run.path))
    steps: list[tuple[str, str | None]] = []
    if not run.finished:
        steps.append(("Finish the training:", f"fullmatch resume {folder}"))
    elif not run.scores:
        aim = "Measure it better" if "accuracy" in run.estimate else "Find out how good it is"
        words = f"{aim}: put pictures it has never seen into test/CLASS/, then:"
        steps.append((words, f"fullmatch evaluate {folder}"))
    if weak := weak_classes(run):
        steps.append((f"Label more pictures of the weakest classes: {', '.join(weak)}.", None))
    if run.finished and not run.benchmark and any_unlabeled(run.result):
        steps.append(
            ("See which pictures are worth a label next:", f"fullmatch suggest {folder} -n 20")
        )
    images = sum(map(sum, run.scores.get("confusion", [])))
    if images >= MANY and run.scores["ece"] > POORLY_CALIBRATED:
        error = f"{100 * run.scores['ece']:.0f} points"
        steps.append(
            (f"Do not trust its confidence as it is: it is off by {error} on average.", None)
        )
    compared = run.labels_only is not None or "gain" in run.estimate
    worth = any_unlabeled(run.result) and run.algorithm != "supervised"
    if run.finished and worth and not compared:
        config = shlex.quote(str(run.path / "config.toml"))
        command = f"fullmatch train --config {config} --baseline"
        steps.append(("Find out whether the unlabeled images help:", command))
    if run.finished:
        steps.append(("Use it on new pictures:", f"fullmatch predict {folder} PICTURES"))
        steps.append(("Compare it with another run:", f"fullmatch report {folder} OTHER"))
    return tag("ol", *(tag("li", words, command_line(command)) for words, command in steps))


def command_line(command: str | None) -> Markup:
    if command is None:
        return Markup("")
    return tag("pre", tag("code", command), tabindex="0", aria_label="Command")


def weak_classes(run: Run, most: int = 3) -> list[str]:
    """Those clearly below the rest."""
    if not run.scores:
        return []
    limit = run.scores["last"] - WEAK
    order = weakest_first(run.scores["per_class"])
    return [
        run.classes[code] for code, share in order[:most] if share is not None and share < limit
    ]


def notes(run: Run) -> Markup:
    found = run.result.get("notes", [])
    return tag("ul", *(tag("li", note) for note in found)) if found else join([])
