"""The paper's numbers."""

from pathlib import Path

from fullmatch.reproduce import grid
from fullmatch.reproduce.paper import PaperKey, PaperNumber, paper_numbers


def test_numbers_of_each_table() -> None:
    numbers = paper_numbers()
    assert numbers[PaperKey(1, "FullMatch", "cifar10-250")] == PaperNumber(95.36, 0.12)
    assert numbers[PaperKey(2, "FullFlex", "imagenet-100000", "top5")] == PaperNumber(81.38, None)
    assert numbers[PaperKey(3, "FixMatch+ANL(w/o PL)", "cifar100-400")] == PaperNumber(58.59, None)
    assert numbers[PaperKey(4, "alpha 0.5, beta 2", "cifar100-10000")] == PaperNumber(78.50, None)


def test_every_printed_row_is_in_the_grid() -> None:
    for key in paper_numbers():
        table = grid.TABLES[key.table]
        assert key.row in [row.name for row in table.rows], key
        assert key.cell in map(str, table.cells), key


def test_numbers_that_were_not_printed_are_left_out() -> None:
    assert not any(key.row == "DoubleMatch" for key in paper_numbers())
    assert PaperKey(1, "UPS", "svhn-40") not in paper_numbers()


def test_file_is_in_the_package() -> None:
    assert (Path(grid.__file__).parent / "paper.csv").is_file()
