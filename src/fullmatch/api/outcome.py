"""What trackers get of a run: its records, and at the end scores, figures and the report."""

from collections.abc import Iterator
from pathlib import Path

from fullmatch.api.pages import write_report
from fullmatch.evaluation.scores import summarize_scores
from fullmatch.experiment.run import Run
from fullmatch.inference.card import render_card
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.reports import training_curves
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import RunResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_run
from fullmatch.tracking.tracker import Outcome
from fullmatch.training.trainer import Record

FIGURES = {
    "accuracy": training_curves.draw_accuracy,
    "loss": training_curves.draw_loss,
    "pseudo_labels": training_curves.draw_pseudo_labels,
}


def describe_record(run: Run, record: Record) -> LogRecord:
    """The numbers of a record as they are in metrics.jsonl."""
    return LogRecord(
        step=record.step,
        metrics=record.metrics,
        seconds=round(run.earlier_seconds + record.seconds, 3),
        evaluation={who: summarize_scores(each) for who, each in record.evaluation.items()},
    )


def make_outcome(folder: RunFolder) -> Outcome:
    """Write the report and the figures if they are not there yet, and list them."""
    report = folder.path / "report.html"
    if not report.exists():
        write_report(folder.path, report)
    trained = TrainedRun(folder.path)
    return Outcome(
        scores=dict(list_scores(trained.result)),
        summary=render_card(trained),
        figures=tuple(draw_figures(folder)),
        files=(report, folder.result, folder.config),
    )


def draw_figures(folder: RunFolder) -> Iterator[Path]:
    """The curves of a run as PNG files in its folder."""
    run = read_run(folder.path)
    for name, draw in FIGURES.items():
        if (chart := draw(run)) is not None:
            place = folder.path / "figures" / f"{name}.png"
            place.parent.mkdir(exist_ok=True)
            chart.save_png(place)
            yield place


def list_scores(result: RunResult) -> Iterator[tuple[str, float]]:
    """The numbers that a result is known by."""
    measured = result.teacher or result.estimate
    if measured is not None:
        accuracy = result.teacher.top1 if result.teacher else None
        estimated = result.estimate.accuracy if result.estimate else 0.0
        yield "result/accuracy", estimated if accuracy is None else accuracy
        yield "result/interval_low", measured.interval[0]
        yield "result/interval_high", measured.interval[1]
    if result.comparison is not None:
        yield "result/gain", result.comparison.gain
    yield "result/seconds", result.seconds
