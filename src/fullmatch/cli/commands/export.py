"""`fullmatch export`: a finished run's model as an ONNX file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    run: Path,
    target: Path,
    *,
    check_with: Annotated[list[str] | None, Parameter(negative=())] = None,
    overwrite: bool = False,
) -> None:
    """Write a finished run's model as one ONNX file that needs neither torch nor fullmatch.

    Parameters
    ----------
    run
        A run folder.
    target
        The file to write, such as model.onnx.
    check_with
        Pictures or folders to compare ONNX and PyTorch on. [default: those of the run's data]
    overwrite
        Replace the file if it exists.
    """
    from fullmatch.api.finished_run import load
    from fullmatch.cli.changes import noting_changes
    from fullmatch.errors import pluralize

    with noting_changes(run):
        model = load(run)
        summary = model.export(target, check_with=check_with or (), overwrite=overwrite)
    channels, height, width = summary.shape
    print(
        f"Written to {target}: images, uint8 (batch, {channels}, {height}, {width}) -> "
        f"probabilities, float32 (batch, {len(model.classes)})."
    )
    print(
        f"Largest difference from PyTorch on {pluralize(summary.images, 'picture')}: "
        f"{summary.difference:.1e}. Class names are in the file's metadata."
    )
    if note := model.trained.calibration_note:
        print(f"Its {note}.")
