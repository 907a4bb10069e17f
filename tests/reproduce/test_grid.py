"""Rows, cells and folds: what can be asked for, and what is said when it cannot."""

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.reproduce import grid
from fullmatch.reproduce.grid import TABLES, Cell


def test_paper_cells() -> None:
    assert [str(cell) for cell in TABLES[1].cells] == [
        *("cifar10-40", "cifar10-250", "cifar10-4000"),
        *("cifar100-400", "cifar100-2500", "cifar100-10000"),
        *("svhn-40", "svhn-1000", "stl10-1000"),
    ]


@pytest.mark.parametrize("text", ["cifar10-251", "digits-40", "svhn-noextra-40"])
def test_any_count_of_labels(text: str) -> None:
    assert str(grid.cell(text)) == text


@pytest.mark.parametrize("text", ["cifar11-40", "cifar10", "cifar10-", "cifar10-0", "cifar10-x"])
def test_unknown_cell(text: str) -> None:
    with pytest.raises(UserError, match=r"unknown cell .*cifar10-250.*did you mean 'cifar10"):
        grid.cells(TABLES[1], text)


def test_rows_by_any_of_their_names() -> None:
    names = [row.name for row in grid.rows(TABLES[1], "np-match,npmatch,CR, fullflex,supervised")]
    assert names == ["NP-Match", "CR", "FullFlex", "supervised"]
    names = [row.name for row in grid.rows(TABLES[3], "fullmatch,fixmatch-eml-bce")]
    assert names == ["FullMatch", "FixMatch+EML(BCE)"]


@pytest.mark.parametrize(("number", "name"), [(1, "fulmatch"), (3, "fixmatch-eml-bc"), (2, "uda")])
def test_unknown_row(number: int, name: str) -> None:
    with pytest.raises(UserError, match=f"unknown row {name!r} of table {number}: expected some"):
        grid.rows(TABLES[number], name)


def test_unknown_full_row() -> None:
    words = r"or full-X for any X that has pseudo-labels; did you mean 'full-softmatch'"
    with pytest.raises(UserError, match=words):
        grid.rows(TABLES[1], "full-sofmatch")


def test_folds() -> None:
    assert grid.folds("0-2") == (0, 1, 2)
    assert grid.folds("2, 0,0-1") == (2, 0, 1)
    for wrong in ("", "a", "2-0", "-1"):
        with pytest.raises(UserError, match="expected numbers such as 0-2"):
            grid.folds(wrong)


def test_config_is_the_published_one() -> None:
    for row in TABLES[1].rows:
        for cell in TABLES[1].cells:
            found = grid.config_for(row, cell, 2)
            known = presets.paper(cell.data, cell.labels, row.algorithm)
            assert found.seed == 2 and found.algorithm == known.algorithm
            assert (found.data, found.model, found.training) == (
                known.data,
                known.model,
                known.training,
            )


def test_ablations_are_all_different_and_the_last_is_the_method() -> None:
    specs = [row.spec() for row in grid.ABLATIONS]
    assert len({repr(spec) for spec in specs}) == 7
    assert specs[0].full is None
    assert specs[-1] == next(row for row in grid.METHODS if row.name == "FullMatch").spec()
    assert specs[-1] in [row.spec() for row in grid.SWEEP]


def test_keys_name_folders_apart() -> None:
    for table in TABLES.values():
        assert len({row.key for row in table.rows}) == len(table.rows)


def test_steps() -> None:
    row = grid.METHODS[0]
    assert grid.config_for(row, Cell("cifar10", 40), 0, 7).training.steps == 7


@pytest.mark.parametrize("text", ["0,3-1", "3-1", "0-99999999999"])
def test_folds_that_are_a_slip(text: str) -> None:
    with pytest.raises(UserError, match="names none, or more than"):
        grid.folds(text)


def test_nothing_is_not_a_choice() -> None:
    with pytest.raises(UserError, match="--cells ',' names none"):
        grid.cells(TABLES[1], ",")
    with pytest.raises(UserError, match="--algorithms ' , ' names none"):
        grid.rows(TABLES[1], " , ")
