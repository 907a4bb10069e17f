"""`fullmatch card`: a finished run's model card."""

from pathlib import Path


def card(run: Path, *, out: Path | None = None, overwrite: bool = False) -> None:
    """Write a model card: what the model is, how good, how that was measured, and its limits.

    Parameters
    ----------
    run
        A run folder.
    out
        A Markdown file to write. [default: the terminal]
    overwrite
        Replace the file if it exists.
    """
    from fullmatch.errors import UserError
    from fullmatch.inference.card import card as written
    from fullmatch.inference.trained_run import TrainedRun
    from fullmatch.storage.atomic import write

    if out is not None and out.exists() and not overwrite:
        raise UserError(f"{out} exists already; name another file, or add --overwrite")
    text = written(TrainedRun(run))
    if out is None:
        print(text, end="")
        return
    write(out, text)
    print(f"Written to {out}.")
