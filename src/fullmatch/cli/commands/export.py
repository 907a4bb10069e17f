"""`fullmatch export`: a finished run's model as an ONNX file, or as a page for browsers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    run: Path,
    target: Path,
    *,
    check_with: Annotated[list[str] | None, Parameter(negative=())] = None,
    overwrite: bool = False,
    runtime: Path | None = None,
) -> None:
    """Write a finished run's model as one file that needs neither torch nor fullmatch.

    Parameters
    ----------
    run
        A run folder, or a model on the hub as hf:user/name.
    target
        The file to write: model.onnx, or model.html for a page that classifies in a browser.
    check_with
        Pictures or folders to compare ONNX and PyTorch on. [default: those of the run's data]
    overwrite
        Replace the file if it exists.
    runtime
        For a page: the dist folder of onnxruntime-web (npm pack onnxruntime-web, then unpack it).
    """
    from fullmatch.api.finished_run import load
    from fullmatch.cli.changes import noting_changes
    from fullmatch.errors import pluralize

    with noting_changes(run):
        model = load(run)
        summary = model.export(
            target, check_with=check_with or (), overwrite=overwrite, runtime=runtime
        )
    channels, height, width = summary.shape
    if target.suffix.lower() == ".html":
        contents = "open it in a browser, and drop pictures on it"
    else:
        contents = (
            f"images, uint8 (batch, {channels}, {height}, {width}) -> probabilities, float32 "
            f"(batch, {len(model.classes)}); class names are in its metadata"
        )
    print(f"Written to {target}: {contents}.")
    print(
        f"Largest difference from PyTorch on {pluralize(summary.images, 'picture')}: "
        f"{summary.difference:.1e}."
    )
    if note := model.trained.calibration_note:
        print(f"Its {note}.")
