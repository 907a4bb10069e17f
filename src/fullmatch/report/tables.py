"""The tables of a report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fullmatch.pages.markup import Markup, join, tag
from fullmatch.storage.runs import Run

SHOWN = 25  # rows; more are a click away
LONG = 40  # letters that are worth breaking a line for
ESTIMATED = (
    "Estimated: on labels that were held out of the training of models made alike. It does not "
    "compare with an accuracy on test images, and only roughly with an estimate on other labels."
)
PERCENT = "\u00a0%"  # the sign never stands alone on a line
UNKNOWN = "not measured"
NONE = "–"  # noqa: RUF001  # the usual sign for an empty cell


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f}{PERCENT}"


def interval(bounds: Sequence[float] | None) -> str:
    return NONE if bounds is None else f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}{PERCENT}"


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table whose first column names the row; wide ones scroll inside their own frame."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = [tag("tr", cell(first, "th", scope="row"), *map(cell, rest)) for first, *rest in rows]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")


def cell(content: object, name: str = "td", **attributes: str) -> Markup:
    wraps = "long" if len(str(content)) > LONG else None
    return tag(name, content, class_=wraps, **attributes)


def folded(caption: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """The first rows, and all of them behind a click when they are many."""
    if len(rows) <= SHOWN:
        return table(caption, headings, rows)
    whole = tag("details", tag("summary", f"All {len(rows)}"), table(caption, headings, rows))
    return join([table(f"{caption}: the first {SHOWN}", headings, rows[:SHOWN]), whole])


def by_class(run: Run) -> Markup:
    """Every class, the weakest first."""
    confusion, classes = run.scores["confusion"], run.classes
    columns = [sum(column) for column in zip(*confusion, strict=True)]
    counted = bool(run.label_counts)
    headings = ["Class", "Accuracy", "Images", "Precision", "Taken for"]
    rows = []
    for code, share in weakest_first(run.scores["per_class"]):
        row, hits = confusion[code], confusion[code][code]
        others = [(count, -other) for other, count in enumerate(row) if other != code and count]
        taken_for = NONE
        if others:
            count, other = max(others)
            taken_for = f"{classes[-other]} ({count})"
        rows.append(
            [
                classes[code],
                percent(share),
                sum(row),
                percent(hits / columns[code] if columns[code] else None),
                taken_for,
                *([run.label_counts[code]] if counted else []),
            ]
        )
    return folded("Classes, the weakest first", headings + ["Labels"] * counted, rows)


def held_out(run: Run, shares: dict[str, float | None]) -> Markup:
    """Every class, by its labels that were held out; the weakest first."""
    rows = [
        [run.classes[code], UNKNOWN if share is None else percent(share), run.label_counts[code]]
        for code, share in weakest_first([shares.get(name) for name in run.classes])
    ]
    return folded("Classes, the weakest first", ["Class", "Held-out labels right", "Labels"], rows)


def weakest_first(shares: Sequence[float | None]) -> list[tuple[int, float | None]]:
    """Codes of the classes with their accuracies; those without test images come last."""
    return sorted(enumerate(shares), key=lambda pair: 2.0 if pair[1] is None else pair[1])


def confusions(run: Run, most: int = 8) -> Markup:
    """What is mistaken for what, in words for whoever cannot see the matrix."""
    pairs = [
        (count, true, predicted)
        for true, row in enumerate(run.scores["confusion"])
        for predicted, count in enumerate(row)
        if count and true != predicted
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    if not pairs:
        return tag("p", "It confuses nothing on these test images.")
    rows = [(run.classes[a], run.classes[b], count) for count, a, b in pairs[:most]]
    return table("Most frequent confusions", ["True class", "Predicted", "Images"], rows)


def settings(run: Run) -> Markup:
    rows = list(flat(run.config).items())
    return table("Settings (config.toml)", ["Setting", "Value"], rows)


def facts(run: Run) -> Markup:
    """Where and on what the run was made."""
    found = run.result
    made = {
        "Data": run.data,
        "Labeled images": found.get("labels"),
        # The labeled ones are counted among them, since they are learned from without labels too.
        "Unlabeled images": found["unlabeled"] - found["labels"] if "unlabeled" in found else None,
        "Algorithm": run.algorithm,
        "Training time": f"{found['seconds']:,.0f} s" if "seconds" in found else None,
        "Machine": found.get("device"),
        "Versions": ", ".join(f"{k} {v}" for k, v in found.get("versions", {}).items()) or None,
        "Split": (found.get("split") or "")[:16] or None,
    }
    rows = [(key, value) for key, value in made.items() if value is not None]
    return table("The run", ["Fact", "Value"], rows)


def comparison(names: Sequence[str], runs: Sequence[Run]) -> Markup:
    """Where there was no test, accuracies are estimates, and say so; empty columns are left out."""
    headings = ["Run", "Algorithm", "Data", "Labels", "Steps", "Accuracy", "95 % interval"]
    headings += ["Median of last 20", "Calibration error", "Against labels only"]
    rows = []
    for name, run in zip(names, runs, strict=True):
        scores, guess = run.scores, run.estimate
        alone = run.result.get("labels_only") or guess.get("gain")
        estimated = f"{percent(guess['accuracy'])}, estimated" if "accuracy" in guess else NONE
        unfinished = "" if run.finished else f" of {run.steps:,}"
        rows.append(
            [
                name,
                run.algorithm,
                run.data,
                run.result.get("labels") or run.config["data"].get("labels", NONE),
                f"{run.steps_done:,}{unfinished}",
                percent(scores["last"]) if scores else estimated,
                interval((scores or guess).get("interval")),
                percent(scores.get("median_last_20")),
                percent(scores.get("ece")),
                f"{alone['verdict']} ({100 * alone['gain']:+.1f} points)" if alone else NONE,
            ]
        )
    told = [at for at in range(len(headings)) if any(row[at] != NONE for row in rows)]
    shown = [[row[at] for at in told] for row in rows]
    whole = table("The runs, measured at the end of training", [headings[at] for at in told], shown)
    guessed = any(not run.scores and "accuracy" in run.estimate for run in runs)
    return join([whole, tag("p", ESTIMATED, class_="faint")] if guessed else [whole])


def differences(names: Sequence[str], runs: Sequence[Run]) -> Markup:
    """The settings in which the runs differ."""
    tables = [flat(run.config) for run in runs]
    keys = list(dict.fromkeys(key for each in tables for key in each))
    rows = [
        [key, *values]
        for key in keys
        if len(set(values := [each.get(key, NONE) for each in tables])) > 1
    ]
    if not rows:
        return tag("p", "The settings are the same.")
    return table("Settings that differ", ["Setting", *names], rows)


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted names, as `--set` takes them."""
    found: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, Path | str):
            found[prefix + key] = str(value)
        else:
            found[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
