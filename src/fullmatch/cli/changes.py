"""A word about files of a run that are not as the run wrote them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def noting_changes(*runs: Path) -> Iterator[None]:
    """Say after the block which files were changed since training.

    Not before it: if the block cannot read such a file, its own line says so, and is the only one.
    To stderr, since what a command prints may be piped.
    """
    from fullmatch.errors import escape_controls

    notes = [note for run in runs for note in list_changes(run)]
    yield
    for note in notes:
        print(escape_controls(note), file=sys.stderr)


def list_changes(run: Path) -> list[str]:
    """A note per changed file of a finished run; none about whole files."""
    from fullmatch.errors import UserError
    from fullmatch.storage.run_folder import RunFolder

    folder = RunFolder(run)
    if not folder.finished:
        return []
    try:
        changed = folder.changed_files()
    except UserError as error:  # a damaged manifest; the files themselves may be whole
        return [str(error)]
    return [f"{path} is not as the run wrote it; {folder.repair}" for path in changed]
