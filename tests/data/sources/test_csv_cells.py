"""Names that look like formulas are text in a spreadsheet, and come back as they were."""

import pytest

from fullmatch.data.sources.csv_cells import (
    FORMULA,
    neutralize_cell,
    neutralize_path,
    restore_cell,
)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@SUM(A1)", "\tx", "\rx", "'=1", "''-1"])
def test_a_formula_becomes_text(text: str) -> None:
    written = neutralize_cell(text)
    assert not written.startswith(FORMULA)
    assert restore_cell(written) == text


@pytest.mark.parametrize("text", ["", "cat", "a=b", "'tis", "''", "it's - fine", " =1"])
def test_other_cells_stay(text: str) -> None:
    assert neutralize_cell(text) == text
    assert restore_cell(text) == text


def test_a_path_stays_the_same_file() -> None:
    assert neutralize_path("=1.png") == "./=1.png"
    assert neutralize_path("a/=1.png") == "a/=1.png"
    assert neutralize_path("/=1.png") == "/=1.png"
