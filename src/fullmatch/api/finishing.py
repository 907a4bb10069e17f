"""What follows the last training step of a run, whether it was resumed or not."""

import shlex
from collections.abc import Callable
from pathlib import Path

from fullmatch import distributed
from fullmatch.api.pages import write_report
from fullmatch.data import Source, find_benchmark
from fullmatch.display.progress import estimate_with_progress, train_baseline_with_progress
from fullmatch.display.terminal import print_line
from fullmatch.experiment.estimate import calibrate_compared
from fullmatch.experiment.settings import read_config
from fullmatch.inference.novelty import store_detector
from fullmatch.inference.picture_map import map_run
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder

ShowResult = Callable[[RunFolder], None]


def show_nothing(folder: RunFolder) -> None:
    """For callers that get the result as a value."""


def finish_run(
    folder: RunFolder, source: Source | None = None, show_result: ShowResult = show_nothing
) -> None:
    """Compare a trained run with its baseline, estimate its accuracy, show the result, report it.

    Steps that are already done are skipped. `source` saves loading the pictures again.
    """
    config = read_config(folder)
    if config.baseline:
        train_baseline_with_progress(folder, source)
    estimate_with_progress(folder, source)
    if not distributed.is_first():
        return
    with distributed.alone():
        finish_alone(folder, source, show_result)


def finish_alone(folder: RunFolder, source: Source | None, show_result: ShowResult) -> None:
    """What needs no training, and only one process."""
    config = read_config(folder)
    calibrate_compared(folder)
    show_result(folder)
    with folder.writing():
        map_run(folder)
    if find_benchmark(config.data.name) is None:
        trained = TrainedRun(folder.path)
        with folder.writing():
            store_detector(trained, source or trained.source)
        report_after_training(folder.path, source)


def report_after_training(run: Path, source: Source | None = None) -> None:
    """Write the report at the end of training; if that fails, the run is finished anyway."""
    try:
        print_line(f"Report: {write_report(run, run / 'report.html', source)}")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        retry = f"fullmatch report {shlex.quote(str(run))}"
        print_line(f"No report was written ({reason}); try: {retry}")


def has_work_left(folder: RunFolder) -> bool:
    """Whether anything is left to train: the model, its baseline, or its estimate."""
    return not folder.finished or lacks_baseline(folder) or folder.read_result().lacks_estimate


def lacks_baseline(folder: RunFolder) -> bool:
    return read_config(folder).baseline and not RunFolder(folder.baseline).finished
