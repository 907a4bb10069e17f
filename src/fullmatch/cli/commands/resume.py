"""`fullmatch resume`: continue a run that was stopped."""

from pathlib import Path


def resume(run: Path, *, finish: bool = False) -> None:
    """Continue a run that was stopped or killed; on a CPU the result is the same, bit for bit.

    Parameters
    ----------
    run
        A run folder.
    finish
        Train no further: finish the run with what it has learned so far.
    """
    from fullmatch.api import training
    from fullmatch.display.terminal import show_result

    training.resume(run, finish=finish, show_result=show_result)
