"""`fullmatch resume`: continue a run that was stopped."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullmatch.data import Source
    from fullmatch.storage.run_folder import RunFolder


def resume(run: Path) -> None:
    """Continue a run that was stopped or killed; on a CPU the result is the same, bit for bit.

    Parameters
    ----------
    run
        A run folder.
    """
    from fullmatch.cli.finish import finish_run
    from fullmatch.experiment.settings import read_config
    from fullmatch.inference.trained_run import require_data
    from fullmatch.storage.run_folder import RunFolder

    folder = RunFolder.existing(run)
    if has_work_left(folder):
        require_data(read_config(folder).data.name, run)
    finish_run(folder, continue_training(folder))


def has_work_left(folder: "RunFolder") -> bool:
    """Whether anything is left to train: the model, its baseline, or its estimate."""
    return not folder.finished or lacks_baseline(folder) or folder.read_result().lacks_estimate


def lacks_baseline(folder: "RunFolder") -> bool:
    from fullmatch.experiment.settings import read_config
    from fullmatch.storage.run_folder import RunFolder

    return read_config(folder).baseline and not RunFolder(folder.baseline).finished


def continue_training(folder: "RunFolder") -> "Source | None":
    """Train the model to the end, if it is not; return the pictures if they were loaded."""
    from fullmatch.cli.progress import train_with_progress
    from fullmatch.experiment.run import resume as resume_run
    from fullmatch.experiment.strategies import choose_strategy

    if not folder.finished:
        run = resume_run(folder, choose=choose_strategy)
        train_with_progress(run)
        return run.source
    if folder.read_result().lacks_estimate:
        print(f"The model of {folder.path} is trained; its accuracy is not estimated yet.")
    elif not lacks_baseline(folder):
        print(f"{folder.path} is finished already.")
    return None
