"""`fullmatch card`: the model card of a finished run."""

from pathlib import Path


def card(run: Path, *, out: Path | None = None, overwrite: bool = False) -> None:
    """Write a model card: what the model is, how good, how that was measured, and its limits.

    Parameters
    ----------
    run
        A run folder, or a model on the hub as hf:user/name.
    out
        A Markdown file to write. [default: the terminal]
    overwrite
        Replace the file if it exists.
    """
    from fullmatch.api.finished_run import load
    from fullmatch.cli.changes import noting_changes
    from fullmatch.errors import UserError
    from fullmatch.storage.atomic import write_text

    if out is not None and out.exists() and not overwrite:
        raise UserError(f"{out} exists already; choose another file, or add --overwrite")
    with noting_changes(run):
        text = load(run).card()
    if out is None:
        print(text, end="")
        return
    write_text(out, text)
    print(f"Written to {out}.")
