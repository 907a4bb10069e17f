"""Results in sentences, for the terminal, reports and cards; needs no torch."""

from collections.abc import Sequence

from fullmatch.storage.result import (
    Estimate,
    OpenSetScores,
    PairedComparison,
    RunResult,
    mean_recall,
)

LISTED = 10  # classes that were not measured; more are counted


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def describe_subject(result: RunResult, images: str = "images") -> str:
    """What a comparison with the baseline is about: all that the baseline did not have."""
    # The baseline starts from new weights: earlier ones may come from unlabeled images.
    started = result.baseline is not None and result.baseline.start is not None
    weights = "together with the weights of the earlier run, " if started else ""
    if result.has_unlabeled:
        return capitalize(f"{weights}the unlabeled {images}")
    return f"There are no unlabeled {images}; {weights}using the labeled ones as unlabeled too"


def describe_gain(comparison: PairedComparison) -> str:
    """'helped: +3.1 points (95 % interval +1.0 to +5.2)'."""
    low, high = (f"{100 * bound:+.1f}" for bound in comparison.interval)
    gain = f"{100 * comparison.gain:+.1f} points (95 % interval {low} to {high})"
    return f"{comparison.verdict}: {gain}"


def describe_comparison(result: RunResult, images: str = "images") -> str:
    """Whether the unlabeled images helped, against the baseline; empty if it was not compared."""
    if result.comparison is None:
        return ""
    return (
        f"{describe_subject(result, images)} {describe_gain(result.comparison)} compared with the "
        "same network trained on the labels only."
    )


def describe_open_set(classes: Sequence[str], scores: OpenSetScores | None) -> str:
    """How well images of unknown classes are recognized; empty without such classes."""
    if not classes:
        return ""
    more = f" and {len(classes) - LISTED} more" if len(classes) > LISTED else ""
    names = f"{', '.join(classes[:LISTED])}{more}"
    if scores is None:
        return f"Unknown classes without test images: {names}."
    images = "test image" if scores.images == 1 else "test images"
    text = (
        f"Unknown classes ({names}): {scores.images:,} {images}, separated from those of known "
        f"classes with an AUROC of {percent(scores.auroc)} (50 % is chance)"
    )
    if scores.balanced_accuracy is None or scores.unknown_accuracy is None:
        return f"{text}."
    return (
        f"{text}; {percent(scores.unknown_accuracy)} of them are predicted as unknown, and the "
        f"mean accuracy over all classes and unknown is {percent(scores.balanced_accuracy)}."
    )


def describe_recall(result: RunResult) -> str:
    """Balanced accuracy and the weakest class, where classes are uneven; else empty."""
    recalls: Sequence[float | None] = ()
    if result.teacher is not None:
        recalls = result.teacher.per_class
    elif result.estimate is not None:
        recalls = [result.estimate.per_class.get(name) for name in result.classes]
    balanced = mean_recall(recalls)
    if balanced is None or not result.uneven:
        return ""
    pairs = zip(recalls, result.classes, strict=True)
    lowest, name = min((recall, name) for recall, name in pairs if recall is not None)
    return (
        f"Classes are uneven: balanced accuracy (the mean of the classes' recalls) "
        f"{percent(balanced)}; lowest recall {percent(lowest)}, of class {name}."
    )


def describe_estimate(estimate: Estimate) -> str:
    """The cross-validation estimate in words."""
    held_out, labels = estimate.held_out, estimate.labels
    of = f"{held_out} of " if estimate.folds > 1 and held_out < labels else ""
    how = (
        f"{estimate.folds}-fold cross-validation" if estimate.folds > 1 else f"{held_out} held out"
    )
    how += ", repeated twice" if estimate.repeats > 1 else ""
    low, high = (f"{100 * bound:.0f}" for bound in estimate.interval)
    subject = (
        "The unlabeled pictures"
        if estimate.unlabeled != labels
        else "There are no unlabeled pictures; using the labeled ones as unlabeled too"
    )
    return (
        f"Estimated accuracy {percent(estimate.accuracy)} (95 % interval {low} to {high}; "
        f"{of}{labels} labels, {how}); labels-only baseline "
        f"{percent(estimate.baseline.accuracy)}. {subject} {describe_gain(estimate.gain)}."
        f"{describe_not_measured(estimate)}{describe_without_start(estimate)}"
    )


def describe_not_measured(estimate: Estimate) -> str:
    """The classes of which no label was held out, such as those with only one; else nothing."""
    names = estimate.not_measured
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f" Not measured: {', '.join(names[:LISTED])}{more}." if names else ""


def describe_without_start(estimate: Estimate) -> str:
    """That an estimate of a run with earlier weights is made without them; else nothing."""
    if not estimate.without_start:
        return ""
    return (
        " These models did not start from the earlier run's weights, which may have been trained "
        "on the held-out labels."
    )


def capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
