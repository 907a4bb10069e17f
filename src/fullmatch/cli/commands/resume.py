"""`fullmatch resume`: go on where a run was stopped."""

from pathlib import Path


def resume(run: Path) -> None:
    """Continue a run that was stopped or killed; the end is the same, bit for bit on a CPU."""
    from fullmatch.cli.commands.report import report_beside
    from fullmatch.cli.progress import follow, follow_baseline
    from fullmatch.cli.terminal import show_result
    from fullmatch.data import DATASETS
    from fullmatch.experiment.baseline import FOLDER
    from fullmatch.experiment.estimate import honest, pending
    from fullmatch.experiment.run import resume as resumed
    from fullmatch.experiment.settings import config_of
    from fullmatch.inference.trained_run import refuse_gone
    from fullmatch.storage.run_folder import RunFolder

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
