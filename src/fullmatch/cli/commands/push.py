"""`fullmatch push`: a finished run's model on the Hugging Face hub."""

from pathlib import Path


def push(run: Path, repository: str, *, private: bool = False) -> None:
    """Share a finished run's model on the Hugging Face hub; others load it as hf:user/name.

    Sent are the model, its card, its settings and its result, without paths and notes of this
    machine. Pictures, predictions and thumbnails are not.

    Parameters
    ----------
    run
        A run folder.
    repository
        Where to put it, as user/name; made if it is not there yet.
    private
        Make a new repository private.
    """
    from fullmatch.api.finished_run import load
    from fullmatch.cli.changes import noting_changes

    with noting_changes(run):
        address = load(run).push(repository, private=private)
    print(f"Shared at {address}")
    print(f"Use it with: fullmatch predict hf:{repository} PICTURES")
