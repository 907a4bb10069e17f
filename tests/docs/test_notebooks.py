"""The notebooks of docs/notebooks: run from the first cell to the last, with stored outputs."""

import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

HOME = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(HOME.glob("*.ipynb"))
STEPS = 3
KILOBYTES = 300  # of a stored notebook


def outputs(notebook: Any) -> list[Any]:
    return [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_in_jupyter(path: Path, tmp_path: Path) -> None:
    run = runpy.run_path(str(HOME / "execute.py"))["run_notebook"]
    notebook = run(path, tmp_path, steps=STEPS)
    shown = outputs(notebook)
    assert any("text/html" in each.get("data", {}) for each in shown)  # a result or a table
    if path.stem != "own_loop":
        assert any("Test accuracy" in each.get("data", {}).get("text/html", "") for each in shown)
        assert f" labels, {STEPS} steps" in str(shown)
    if path.stem == "own_pictures":  # whose training shows a bar
        assert any("widget-view" in kind for each in shown for kind in each.get("data", {}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [each for each in outputs(notebook) if each.output_type == "error"]
    assert "widget-view" not in str(notebook)
    assert path.stat().st_size < KILOBYTES * 1000


def test_all_are_listed() -> None:
    page = (HOME / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        assert f"({path.name})" in page
