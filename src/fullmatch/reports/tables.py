"""The tables of a report."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fullmatch.pages.markup import Markup, join, tag
from fullmatch.storage.json_files import JSON
from fullmatch.storage.result import FinalScores, Interval
from fullmatch.storage.runs import StoredRun

MOST_ROWS = 25  # longer tables are folded
LONG_CELL = 30  # characters above which a cell may wrap
ESTIMATED = (
    "Estimated: measured by cross-validation, on labels held out from other models that were "
    "trained the same way. It cannot be compared with an accuracy on test pictures, and only "
    "roughly with an estimate on other labels."
)
PERCENT = "\u00a0%"  # a line never starts with the sign
NOT_MEASURED = "not measured"
EMPTY = "–"  # noqa: RUF001  # the usual sign for an empty cell


def format_percent(fraction: float | None) -> str:
    return EMPTY if fraction is None else f"{100 * fraction:.1f}{PERCENT}"


def format_interval(interval: Interval | None) -> str:
    if interval is None:
        return EMPTY
    low, high = interval
    return f"{100 * low:.1f} to {100 * high:.1f}{PERCENT}"


def render_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table whose first column names the row; a wide one scrolls in its own frame."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = [
        tag("tr", render_cell(first, "th", scope="row"), *map(render_cell, others))
        for first, *others in rows
    ]
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", table, class_="scroll", role="region", aria_label=caption, tabindex="0")


def render_cell(content: object, name: str = "td", **attributes: str) -> Markup:
    css_class = "long" if len(str(content)) > LONG_CELL else None
    return tag(name, content, class_=css_class, **attributes)


def render_long_table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[object]]
) -> Markup:
    """The first rows, and if there are more, all of them in a fold."""
    if len(rows) <= MOST_ROWS:
        return render_table(caption, headings, rows)
    first = render_table(f"{caption}: the first {MOST_ROWS}", headings, rows[:MOST_ROWS])
    whole = render_table(caption, headings, rows)
    return join([first, tag("details", tag("summary", f"All {len(rows)}"), whole)])


def render_strategies(run: StoredRun) -> Markup:
    """The strategies that were compared on held-out labels before training, if any."""
    strategies = run.result.strategies if run.result else ()
    if not strategies:
        return Markup("")
    rows = [
        (
            strategy.name,
            format_percent(strategy.accuracy),
            format_interval(strategy.interval),
            "used" if strategy.chosen else "",
        )
        for strategy in strategies
    ]
    caption = "Strategies, compared on held-out labels"
    table = render_table(caption, ("Strategy", "Accuracy", f"95{PERCENT} interval", ""), rows)
    return join([table, *(tag("p", each.explanation) for each in strategies if each.explanation)])


def render_class_scores(run: StoredRun, scores: FinalScores) -> Markup:
    """Test scores of every class, the weakest first."""
    predicted = [sum(column) for column in zip(*scores.confusion, strict=True)]
    headings = ["Class", "Recall", "Pictures", "Precision", "Confused with"]
    rows = []
    for code, accuracy in sort_by_accuracy(scores.per_class):
        correct = scores.confusion[code][code]
        row: list[object] = [
            run.classes[code],
            format_percent(accuracy),
            sum(scores.confusion[code]),
            format_percent(correct / predicted[code] if predicted[code] else None),
            format_confusion(scores, run.classes, code),
        ]
        rows.append([*row, run.label_counts[code]] if run.label_counts else row)
    if run.label_counts:
        headings.append("Labels")
    return render_long_table("Classes, the weakest first", headings, rows)


def format_confusion(scores: FinalScores, classes: Sequence[str], code: int) -> str:
    """The class that this one is most often mistaken for, and how often."""
    mistakes = [
        (count, -other)
        for other, count in enumerate(scores.confusion[code])
        if other != code and count
    ]
    if not mistakes:
        return EMPTY
    count, other = max(mistakes)
    return f"{classes[-other]} ({count})"


def render_class_estimates(run: StoredRun, per_class: dict[str, float | None]) -> Markup:
    """Every class by its held-out labels, the weakest first."""
    accuracies = [per_class.get(name) for name in run.classes]
    rows = [
        [
            run.classes[code],
            NOT_MEASURED if accuracy is None else format_percent(accuracy),
            run.label_counts[code],
        ]
        for code, accuracy in sort_by_accuracy(accuracies)
    ]
    headings = ["Class", "Recall on held-out labels", "Labels"]
    return render_long_table("Classes, the weakest first", headings, rows)


def sort_by_accuracy(accuracies: Sequence[float | None]) -> list[tuple[int, float | None]]:
    """Codes and accuracies of the classes, the weakest first; those without pictures last."""
    return sorted(enumerate(accuracies), key=lambda pair: 2.0 if pair[1] is None else pair[1])


def render_confusions(run: StoredRun, scores: FinalScores, limit: int = 8) -> Markup:
    """The most frequent confusions, as text for those who cannot see the matrix."""
    pairs = [
        (count, true, predicted)
        for true, row in enumerate(scores.confusion)
        for predicted, count in enumerate(row)
        if count and true != predicted
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    if not pairs:
        return tag("p", "No test picture is confused with another class.")
    rows = [(run.classes[a], run.classes[b], count) for count, a, b in pairs[:limit]]
    return render_table("Most frequent confusions", ["True class", "Predicted", "Pictures"], rows)


def render_settings(run: StoredRun) -> Markup:
    rows = list(flatten(run.settings.table).items())
    return render_table("Settings (config.toml)", ["Setting", "Value"], rows)


def render_run_facts(run: StoredRun) -> Markup:
    """What the run was trained on, where, and for how long."""
    rows: list[tuple[str, object]] = [("Data", run.data)]
    result = run.result
    if result is not None:
        rows.append(("Labeled pictures", result.labels))
        if result.unlabeled is not None:
            # `unlabeled` counts the labeled pictures too.
            rows.append(("Unlabeled pictures", result.unlabeled - result.labels))
    rows.append(("Algorithm", run.algorithm))
    if result is not None:
        versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
        rows += [
            ("Training time", f"{result.seconds:,.0f} s"),
            ("Device", result.device),
            ("Versions", versions),
        ]
        if result.split_hash is not None:
            rows.append(("Split", result.split_hash[:16]))
    return render_table("The run", ["Name", "Value"], rows)


def render_comparison(names: Sequence[str], runs: Sequence[StoredRun]) -> Markup:
    """One row per run; estimated accuracies are marked, and empty columns left out."""
    headings = ["Run", "Algorithm", "Data", "Labels", "Steps", "Accuracy", "95 % interval"]
    headings += ["Balanced accuracy", "Median of last 20", "Calibration error"]
    headings += ["Against labels only"]
    headings += ["AUROC, unknown classes"]
    rows = [comparison_row(name, run) for name, run in zip(names, runs, strict=True)]
    used = [at for at in range(len(headings)) if any(row[at] != EMPTY for row in rows)]
    table = render_table(
        "The runs at the end of training",
        [headings[at] for at in used],
        [[row[at] for at in used] for row in rows],
    )
    estimated = any(run.scores is None and run.estimate is not None for run in runs)
    return join([table, tag("p", ESTIMATED, class_="faint")] if estimated else [table])


def comparison_row(name: str, run: StoredRun) -> list[object]:
    scores, estimate = run.scores, run.estimate
    accuracy, interval = EMPTY, EMPTY
    if scores is not None:
        accuracy, interval = format_percent(scores.top1), format_interval(scores.interval)
    elif estimate is not None:
        accuracy = f"{format_percent(estimate.accuracy)}, estimated"
        interval = format_interval(estimate.interval)
    comparison = run.result.comparison if run.result else None
    open_set = run.result.open_set if run.result else None
    gain = EMPTY
    if comparison is not None:
        gain = f"{comparison.verdict} ({100 * comparison.gain:+.1f}\u00a0points)"
    return [
        name,
        run.algorithm,
        run.data,
        (run.result.labels if run.result else run.settings.labels) or EMPTY,
        f"{run.steps_done:,}" + ("" if run.finished else f" of {run.steps:,}"),
        accuracy,
        interval,
        format_percent(scores.balanced_accuracy if scores and scores.uneven else None),
        format_percent(scores.median_last_20 if scores else None),
        format_percent(scores.ece if scores else None),
        gain,
        format_percent(open_set.auroc if open_set else None),
    ]


def render_differences(names: Sequence[str], runs: Sequence[StoredRun]) -> Markup:
    """The settings in which the runs differ."""
    tables = [flatten(run.settings.table) for run in runs]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    rows = [
        [key, *values]
        for key in keys
        if len(set(values := [table.get(key, EMPTY) for table in tables])) > 1
    ]
    if not rows:
        return tag("p", "All settings are the same.")
    return render_table("Settings that differ", ["Setting", *names], rows)


def flatten(table: JSON, prefix: str = "") -> dict[str, str]:
    """Dotted names, as `--set` takes them."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, Path | str):
            flat[prefix + key] = str(value)
        else:
            flat[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat
