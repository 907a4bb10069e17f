"""The paper's numbers, looked up where they stand."""

from pathlib import Path

from fullmatch.reproduce import grid
from fullmatch.reproduce.paper import Key, Published, published


def test_numbers_of_each_table() -> None:
    found = published()
    assert found[Key(1, "FullMatch", "cifar10-250")] == Published(95.36, 0.12)
    assert found[Key(2, "FullFlex", "imagenet-100000", "top5")] == Published(81.38, None)
    assert found[Key(3, "FixMatch+ANL(w/o PL)", "cifar100-400")] == Published(58.59, None)
    assert found[Key(4, "alpha 0.5, beta 2", "cifar100-10000")] == Published(78.50, None)


def test_every_row_that_the_paper_prints_is_in_its_grid() -> None:
    for key in published():
        table = grid.TABLES[key.table]
        assert key.row in [row.name for row in table.rows], key
        assert key.cell in map(str, table.cells), key


def test_what_was_not_printed_is_left_out() -> None:
    assert not any(key.row == "DoubleMatch" for key in published())
    assert Key(1, "UPS", "svhn-40") not in published()


def test_it_is_shipped() -> None:
    assert (Path(grid.__file__).parent / "paper.csv").is_file()
