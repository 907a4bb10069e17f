"""`fullmatch verify`: whether the files of a run are as it wrote them."""

from pathlib import Path


def verify(run: Path) -> None:
    """Check every file of a run: whole, changed since training, damaged or missing.

    Parameters
    ----------
    run
        A run folder.
    """
    from fullmatch.display.terminal import TextTable
    from fullmatch.errors import UserError, pluralize
    from fullmatch.experiment.verification import verify_run
    from fullmatch.storage.run_folder import RunFolder

    folder = RunFolder.existing(run)
    checks = verify_run(folder)
    table = TextTable("file", "state", "")
    for check in checks:
        table.add(check.name, check.state.value, check.details)
    table.show()
    bad = [check for check in checks if not check.usable]
    if bad:
        names = ", ".join(check.name for check in bad)
        raise UserError(
            f"{pluralize(bad, 'file')} of {run} cannot be relied on: {names}; what a checkpoint "
            f"can make is written again with: {folder.resume_command}"
        )
