"""What is printed: notes, tables and results, in terminals, notebooks and files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fullmatch.errors import escape_controls
from fullmatch.evaluation.wording import (
    describe_estimate,
    describe_gain,
    describe_open_set,
    describe_recall,
    describe_subject,
    percent,
)

if TYPE_CHECKING:
    from fullmatch.inference.evaluate import Evaluation
    from fullmatch.storage.result import FinalScores, Interval, RunResult, StrategyResult
    from fullmatch.storage.run_folder import RunFolder

FILES = ("model.safetensors", "result.json", "metrics.jsonl", "config.toml")
NO_ACCURACY = "No test images, so no accuracy: add test/CLASS/* and run: fullmatch evaluate"

console = Console(highlight=False, emoji=False)


def print_note(sentence: str) -> None:
    """Print a sentence that matters less than results do."""
    console.print(escape_controls(sentence), style="dim", markup=False, soft_wrap=True)


def print_line(text: str) -> None:
    """Print a line as it is, whatever its length and its brackets; names cannot end it."""
    console.print(escape_controls(text), markup=False, soft_wrap=True)


def can_draw_bars() -> bool:
    """Whether bars move here: in a terminal, or in a notebook that has ipywidgets."""
    if console.quiet:
        return False
    return find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal


@contextmanager
def showing(shown: bool) -> Iterator[None]:
    """Print and draw bars as usual, or nothing at all; of several processes, the first prints."""
    from fullmatch import distributed  # it takes a while to import torch

    quiet = not shown or not distributed.is_first()
    before, console.quiet = console.quiet, console.quiet or quiet
    try:
        yield
    finally:
        console.quiet = before


class TextTable:
    """Columns of plain text as wide as their cells, so that the output works with grep."""

    def __init__(self, *headings: str) -> None:
        self.rows = [headings]

    def add(self, *cells: str) -> None:
        self.rows.append(tuple(map(escape_controls, cells)))

    def show(self) -> None:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        for number, row in enumerate(self.rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            line = "  ".join(cells).rstrip()
            console.print(line, style="" if number else "bold", markup=False, soft_wrap=True)


def show_name(name: str) -> str:
    """A name from the user's data in a table of rich."""
    return escape(escape_controls(name))


def show_result(folder: "RunFolder") -> None:
    """A finished run: how good it is, and which files it wrote."""
    result = folder.read_result()
    if result.teacher is not None:
        show_test_accuracy(folder, result, result.teacher)
    elif result.estimate is not None:
        print_line(describe_estimate(result.estimate))
    else:
        print_line(result.estimate_missing or NO_ACCURACY)
    if recall := describe_recall(result):
        print_line(recall)
    print_line(f"Trained in {result.seconds:.0f} s. Written to {folder.path}:")
    for name in FILES:
        print_line(f"  {folder.path / name}")
    if folder.baseline.exists():
        print_line(f"  {folder.baseline}/")


def show_test_accuracy(folder: "RunFolder", result: "RunResult", scores: "FinalScores") -> None:
    """Test accuracies with their intervals, and how they were chosen."""
    from fullmatch.storage.run_folder import RunFolder

    table = Table(title=f"{show_name(result.data)}, {result.labels} labels, test accuracy")
    table.add_column("trained on")
    table.add_column("accuracy", justify="right")
    table.add_column("95 % interval", justify="right")
    baseline = RunFolder(folder.baseline)
    if baseline.finished:
        add_accuracy(table, "the labels only", baseline.read_result().teacher)
    add_accuracy(table, describe_training(result), scores)
    console.print(table)
    if result.baseline is not None:
        print_line(f"{describe_subject(result)} {describe_gain(result.baseline)}.")
    if scores.median_last_20 is not None and scores.best_chosen_on_test is not None:
        print_line(
            f"Accuracy is that of the averaged model at the end; median of the last 20 "
            f"evaluations {percent(scores.median_last_20)}; best, chosen on the test set, "
            f"{percent(scores.best_chosen_on_test)}."
        )
    if open_set := describe_open_set(result.unknown_classes, result.open_set):
        print_line(open_set)


def add_accuracy(table: Table, name: str, scores: "FinalScores | None") -> None:
    if scores is not None:
        table.add_row(name, percent(scores.top1), format_interval(scores.interval))


def describe_training(result: "RunResult") -> str:
    if result.algorithm_name == "supervised":
        return "the labels only"
    return "labels and unlabeled images" if result.has_unlabeled else "the labels, as unlabeled too"


def format_interval(bounds: "Interval") -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}"


def show_evaluation(evaluation: "Evaluation") -> None:
    for note in evaluation.notes:
        print_note(note)
    scores = evaluation.scores
    table = Table(title=f"{show_name(evaluation.data)}, {evaluation.images} test images")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_row("accuracy", f"{percent(scores.top1)} ({format_interval(evaluation.interval)})")
    if scores.balanced_accuracy is not None:
        table.add_row("balanced accuracy", percent(scores.balanced_accuracy))
    if scores.top5 is not None:
        table.add_row("top-5 accuracy", percent(scores.top5))
    table.add_row("calibration error", percent(scores.ece))
    for name, accuracy in zip(evaluation.classes, scores.per_class, strict=True):
        text = "no images" if accuracy is None else percent(accuracy)
        table.add_row(f"recall of class {show_name(name)}", text)
    console.print(table)
    if open_set := describe_open_set(evaluation.unknown_classes, evaluation.open_set):
        print_line(open_set)


def show_rounds(folders: "list[RunFolder]") -> None:
    """The accuracy of each round of self-training."""
    table = TextTable("round", "accuracy", "95 % interval", "folder")
    for number, folder in enumerate(folders, start=1):
        scores = folder.read_result().teacher
        accuracy, interval = "-", "-"
        if scores is not None:
            accuracy, interval = percent(scores.top1), format_interval(scores.interval)
        table.add(str(number), accuracy, interval, str(folder.path))
    table.show()


def show_strategies(strategies: "Sequence[StrategyResult]") -> None:
    """The strategies that were compared on held-out labels, and which one is used."""
    if not strategies:
        return
    table = TextTable("strategy", "held-out accuracy", "95 % interval", "")
    for strategy in strategies:
        low, high = (f"{100 * bound:.0f}" for bound in strategy.interval)
        chosen = "used" if strategy.chosen else ""
        table.add(strategy.name, percent(strategy.accuracy), f"{low} to {high}", chosen)
    table.show()
    for strategy in strategies:
        if strategy.explanation:
            print_note(strategy.explanation)
