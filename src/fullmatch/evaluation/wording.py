"""Results in sentences, for the terminal, reports and cards; needs no torch."""

from fullmatch.storage.result import Estimate, PairedComparison, RunResult

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
