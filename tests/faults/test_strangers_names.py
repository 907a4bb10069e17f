"""Names of files and classes that come from someone else: shown, never obeyed."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.data.sources.csv_cells import FORMULA
from fullmatch.data.sources.tables import read_rows
from fullmatch.inference.contact_sheet import format_csv
from fullmatch.inference.prediction import Flag, Prediction, RankedClass, write_csv
from fullmatch.inference.suggestion import Suggestion
from fullmatch.labeling.label_table import LabelTable, list_pictures
from tests.own_pictures import clean_folder, picture, save

ESCAPE = "\x1b[31mred\x1b]0;title\x07\nnext"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def predictions(*names: str) -> list[Prediction]:
    ranked = (RankedClass("=cmd()", 0.9), RankedClass("dog", 0.1))
    return [Prediction(name, ranked, Flag.NONE) for name in names]


def test_predict_shows_controls_in_a_terminal_and_writes_names_to_a_file() -> None:
    terminal, file = Terminal(), io.StringIO()
    for out in (terminal, file):
        write_csv(predictions(ESCAPE), out)
    assert "\x1b" not in terminal.getvalue()
    assert r"\x1b[31mred" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 2
    file.seek(0)
    assert list(csv.reader(file))[1][0] == ESCAPE


def check_cells(rows: Sequence[Sequence[str]]) -> None:
    assert not [cell for row in rows for cell in row if cell.startswith(FORMULA)]


def test_predictions_have_no_formulas(tmp_path: Path) -> None:
    """And `fullmatch` reads what it wrote."""
    path = tmp_path / "predictions.csv"
    with path.open("w", newline="") as file:
        write_csv(predictions("=1.png", "+2.png", "@3.png", "a.png"), file)
    with path.open(newline="") as file:
        check_cells(list(csv.reader(file)))
    rows = read_rows(path)
    assert [row.label for row in rows] == ["=cmd()"] * 4
    assert [row.path for row in rows] == ["./=1.png", "./+2.png", "./@3.png", "a.png"]


def test_suggestions_have_no_formulas(tmp_path: Path) -> None:
    suggestion = Suggestion(str(tmp_path / "=1.png"), "=cat", 0.5, "=cat or dog")
    (tmp_path / "suggestions.csv").write_text(text := format_csv([suggestion], tmp_path))
    check_cells(list(csv.reader(io.StringIO(text))))
    assert read_rows(tmp_path / "suggestions.csv")[0].path == "./=1.png"


def test_labels_have_no_formulas_and_are_read_again(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    save(picture("grass", 1, (16, 16)), home / "labeled" / "=x" / "=1.png")
    survey = list_pictures(home)
    table = LabelTable(tmp_path / "labels.csv", survey)
    table.write()
    with (tmp_path / "labels.csv").open(newline="") as file:
        check_cells(list(csv.reader(file)))
    again = LabelTable(tmp_path / "labels.csv", survey)
    assert again.rows == table.rows
    assert "=x" in again.labels()


def test_errors_and_notes_show_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    (home / "unlabeled" / f"{ESCAPE}.png").write_bytes(b"damaged")
    (home / "labeled" / f"{ESCAPE}").mkdir()
    for data in (home, tmp_path / ESCAPE):
        with pytest.raises(SystemExit):
            main(["check", str(data)])
    shown = capsys.readouterr()
    assert r"\x1b[31mred" in shown.out
    assert r"\x1b[31mred" in shown.err
    assert "\x1b" not in shown.out + shown.err
