"""What follows the last training step, for `train` and `resume` alike."""

from fullmatch.cli.commands.report import report_after_training
from fullmatch.cli.progress import estimate_with_progress, train_baseline_with_progress
from fullmatch.cli.terminal import show_result
from fullmatch.data import DATASETS, Source
from fullmatch.experiment.estimate import calibrate_compared
from fullmatch.experiment.settings import read_config
from fullmatch.inference.picture_map import map_run
from fullmatch.storage.run_folder import RunFolder


def finish_run(folder: RunFolder, source: Source | None = None) -> None:
    """Compare a trained run with its baseline, estimate its accuracy, show the result, report it.

    Steps that are already done are skipped. `source` saves loading the pictures again.
    """
    config = read_config(folder)
    if config.baseline:
        train_baseline_with_progress(folder, source)
    estimate_with_progress(folder, source)
    calibrate_compared(folder)
    show_result(folder)
    with folder.writing():
        map_run(folder)
    if config.data.name not in DATASETS:
        report_after_training(folder.path, source)
