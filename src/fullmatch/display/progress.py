"""Training with live progress: a bar, notes, and interrupts that lose nothing."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fullmatch import distributed
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.display import terminal
from fullmatch.display.stages import show_stages
from fullmatch.display.terminal import can_draw_bars, print_line, print_note
from fullmatch.evaluation.wording import percent
from fullmatch.experiment.baseline import compare_with_baseline, prepare_baseline
from fullmatch.experiment.cross_validation import CrossValidation, FoldProgress
from fullmatch.experiment.estimate import prepare_estimate, store_estimate
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.nan_recovery import train_with_rollback
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import display_name, read_config
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.trainer import Record

# Of a person, of batch systems, and what SLURM is told to send some time before the end.
SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, n)]


def train_with_progress(run: Run, records: Iterator[Record] | None = None) -> None:
    """Train to the end with a progress bar; an interrupt saves, shows how to resume, and is raised.

    `records` are those of a training that others have begun to watch.
    """
    for note in (*run.notes, *run.recovery):
        print_note(note)
    with pausing_on_interrupt(run), TrainingProgress(run) as progress:
        for record in train_with_rollback(run) if records is None else records:
            progress.show(record)
            for finding in run.monitor.check(LogRecord(record.step, record.metrics)):
                print_note(finding.sentence())
            if record.paused:
                progress.stop()
                print_line(f"Stopped and saved at step {record.step}. Resume with:")
                print_line(f"  {run.folder.resume_command}")
                if record.step and not run.folder.is_baseline:
                    print_line("Or finish with what it has learned so far:")
                    print_line(f"  {run.folder.resume_command} --finish")
                raise KeyboardInterrupt
    for health in run.result.health:
        if health.kind not in run.monitor.reported:
            print_note(health.sentence())


def train_baseline_with_progress(folder: RunFolder, source: Source | None = None) -> None:
    """Train the same network on the labels only, and compare the run with it."""
    run = prepare_baseline(folder, source)
    if run is not None:
        fresh = ", from new weights" if read_config(folder).model.start is not None else ""
        print_line("")
        print_line(f"The same network on the labels only{fresh}:")
        train_with_progress(run)
    distributed.on_first(lambda: compare_with_baseline(folder))


def estimate_with_progress(folder: RunFolder, source: Source | None = None) -> None:
    """Estimate a run's accuracy by cross-validation, if it has no test set to measure it on."""
    try:
        validation = prepare_estimate(folder, source)
        if validation is None:
            return
        run_folds(folder, validation)
    except KeyboardInterrupt:
        print_line(
            "Stopped. The model is trained, and the finished folds of the estimate are saved."
        )
        print_line("Resume with:")
        print_line(f"  {folder.resume_command}")
        raise
    reported = {finding.kind for finding in folder.read_result().health}
    result = distributed.on_first(lambda: store_estimate(folder, validation))
    for finding in result.health:
        if finding.kind not in reported:
            print_note(finding.sentence())


def run_folds(folder: RunFolder, validation: CrossValidation) -> None:
    if validation.folds:
        print_note(
            f"estimating the accuracy by cross-validation: {len(validation.folds)} folds, each "
            "trained with the unlabeled pictures and on the labels only, "
            f"{validation.config.training.steps} steps"
        )
    bar = Progress(console=terminal.console, transient=True, disable=not can_draw_bars())
    lock = folder.locked() if distributed.is_first() else nullcontext()
    with lock, folder.writing(), bar:
        task = bar.add_task("cross-validation", total=1.0)
        lines = FoldLines()
        for progress in validation.run():
            bar.update(task, completed=progress.done)
            if bar.disable:
                lines.show(progress)


class FoldLines:
    """One line per finished fold, for outputs that cannot show a bar."""

    def __init__(self) -> None:
        self.start: tuple[float, float] | None = None  # fraction done and time at the first call
        self.fold = 0

    def show(self, progress: FoldProgress) -> None:
        if self.start is None:  # earlier folds may have been finished by another process
            self.start, self.fold = (progress.done, monotonic()), progress.fold
        if progress.fold == self.fold:
            return
        self.fold = progress.fold
        done, started = self.start
        left = (monotonic() - started) / (progress.done - done) * (1 - progress.done)
        print_line(f"estimate {progress.fold}/{progress.folds}  {left:.0f} s left")


class TrainingProgress:
    """Steps, time left and metrics: a moving bar, or about ten lines."""

    def __init__(self, run: Run) -> None:
        self.name = display_name(run.config.algorithm)
        self.total = run.config.training.steps
        self.line_every = max(1, self.total // 10)
        self.next_line = 0
        self.live = can_draw_bars()
        self.accuracy = ""  # of the last evaluation
        self.bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=terminal.console,
            disable=not self.live,
        )
        step = run.state.step
        self.task = self.bar.add_task(self.name, total=self.total, completed=step, metrics="")
        # Step and seconds of the previous record; None if the first one includes compilation.
        self.previous = (step, 0.0) if not run.compiled else None

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.bar.stop()

    def show(self, record: Record) -> None:
        if not record.metrics:
            return
        metrics = self.describe_metrics(record)
        self.bar.update(self.task, completed=record.step, metrics=metrics)
        if not self.live and (record.step >= self.next_line or record.step == self.total):
            steps = f"{self.name} {record.step}/{self.total}"
            parts = (steps, self.describe_time_left(record), metrics)
            print_line("  ".join(filter(None, parts)))
            self.next_line = record.step + self.line_every
        self.previous = (record.step, record.seconds)

    def describe_time_left(self, record: Record) -> str:
        """From the speed since the previous record; empty if there is none."""
        if self.previous is None:
            return ""
        steps, seconds = record.step - self.previous[0], record.seconds - self.previous[1]
        return f"{seconds / max(1, steps) * (self.total - record.step):.0f} s left"

    def describe_metrics(self, record: Record) -> str:
        """Loss, fraction of the unlabeled images in use, k, and test accuracy."""
        parts = [f"loss {record.metrics['loss']:.3f}"]
        if "selected" in record.metrics:
            parts.append(f"used {100 * record.metrics['selected']:.0f} %")
        if "k" in record.metrics:
            parts.append(f"k {record.metrics['k']:.1f}")
        if record.evaluation:
            self.accuracy = f"test {percent(record.evaluation['teacher'].top1)}"
        return "  ".join(filter(None, (*parts, self.accuracy)))


@contextmanager
def pausing_on_interrupt(run: Run) -> Iterator[None]:
    """The first of these signals finishes the step and saves; the second stops at once.

    Several processes get a signal more than once, from torchrun too, and save anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def handle(number: int, frame: Any) -> None:
        if run.trainer.stop and distributed.world_size() == 1:
            raise KeyboardInterrupt
        run.trainer.stop = True

    previous = {s: signal.signal(s, handle) for s in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def feature_progress(config: ExperimentConfig) -> Iterator[PassOptions]:
    """A bar for the feature pass of a pretrained body, or lines outside a terminal."""
    if config.model.body == "trained":
        yield PassOptions()
        return
    with show_stages() as stages:
        yield PassOptions(progress=stages.begin("features"))
