"""`fullmatch resume`: go on where a run was stopped."""

from pathlib import Path


def resume(run: Path) -> None:
    """Continue a run that was stopped or killed; the end is the same, bit for bit on a CPU."""
    from fullmatch.commands.report import report_beside
    from fullmatch.comparison import FOLDER
    from fullmatch.data import DATASETS
    from fullmatch.display import show_result
    from fullmatch.experiment import resume as resumed
    from fullmatch.honest import honest, pending
    from fullmatch.runfolder import RunFolder
    from fullmatch.settings import config_of
    from fullmatch.trained import refuse_gone
    from fullmatch.watch import follow, follow_baseline

    folder = RunFolder.existing(run)
    config = config_of(folder)
    baseline = config.baseline
    finished = folder.result.exists()
    unmeasured = finished and pending(folder.read_result())
    alone = not baseline or RunFolder(folder.path / FOLDER).result.exists()
    if not finished or unmeasured or not alone:
        refuse_gone(config.data.name, run)
    source = None
    if not finished:
        begun = resumed(folder)
        source = begun.source
        follow(begun)
    elif unmeasured:
        print(f"The model of {run} is finished; how good it is, is still to be found out.")
    elif alone:
        print(f"{run} is finished already.")
    if baseline:
        follow_baseline(folder, source)
    honest(folder, source)
    show_result(folder)
    if config.data.name not in DATASETS:
        report_beside(folder.path)
