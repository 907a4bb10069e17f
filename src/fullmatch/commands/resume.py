"""`fullmatch resume`: go on where a run was stopped."""

from pathlib import Path


def resume(run: Path) -> None:
    """Continue a run that was stopped or killed; the end is the same, bit for bit on a CPU."""
    from fullmatch.display import show_result
    from fullmatch.experiment import resume as resumed
    from fullmatch.honest import honest
    from fullmatch.runfolder import RunFolder
    from fullmatch.settings import config_of
    from fullmatch.watch import follow, follow_baseline

    folder = RunFolder.existing(run)
    if folder.result.exists():
        print(f"{run} is finished already.")
    else:
        follow(resumed(folder))
    if config_of(folder).baseline:
        follow_baseline(folder)
    honest(folder)
    show_result(folder)
