"""Run the notebooks beside this file, and store their outputs; `make notebooks` calls it."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"  # a moving bar, which a page cannot show
TIMEOUT = 600  # seconds per cell


def run_notebook(path: Path, folder: Path, *, steps: int | None = None) -> NotebookNode:
    """Run every cell in a kernel of its own, in this folder; an error ends it.

    `steps` replaces the number of steps, which is all that the cell tagged `parameters` has.
    """
    notebook = nbformat.read(path, as_version=4)
    if steps is not None:
        (parameters,) = (cell for cell in notebook.cells if is_parameters(cell))
        parameters.source = f"STEPS = {steps}"
    resources = {"metadata": {"path": str(folder)}}
    # On a busy machine outputs arrive late; by default those after 4 seconds would be lost.
    NotebookClient(
        notebook,
        timeout=TIMEOUT,
        iopub_timeout=TIMEOUT,
        raise_on_iopub_timeout=True,
        resources=resources,
    ).execute()
    return notebook


def is_parameters(cell: NotebookNode) -> bool:
    return "parameters" in cell.metadata.get("tags", ())


def keep_shown(notebook: NotebookNode) -> NotebookNode:
    """Leave out what a page cannot show, and what changes with every execution."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if WIDGET not in each.get("data", {})]
    return notebook


if __name__ == "__main__":
    for source in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(HERE.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as place:
            nbformat.write(keep_shown(run_notebook(source, Path(place))), source)
        print(f"{source.name}: {source.stat().st_size / 1000:.0f} kB")
