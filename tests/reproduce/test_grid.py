"""Rows, cells and folds: which texts are valid, and the errors for those that are not."""

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.reproduce import grid
from fullmatch.reproduce.grid import TABLES, TableCell


def test_paper_cells() -> None:
    assert [str(cell) for cell in TABLES[1].cells] == [
        *("cifar10-40", "cifar10-250", "cifar10-4000"),
        *("cifar100-400", "cifar100-2500", "cifar100-10000"),
        *("svhn-40", "svhn-1000", "stl10-1000"),
    ]


@pytest.mark.parametrize("text", ["cifar10-251", "digits-40", "svhn-noextra-40"])
def test_any_number_of_labels(text: str) -> None:
    assert str(grid.parse_cell(text)) == text


@pytest.mark.parametrize("text", ["cifar11-40", "cifar10", "cifar10-", "cifar10-0", "cifar10-x"])
def test_unknown_cell(text: str) -> None:
    with pytest.raises(UserError, match=r"unknown cell .*cifar10-250.*did you mean 'cifar10"):
        grid.select_cells(TABLES[1], text)


def test_rows_by_any_of_their_names() -> None:
    names = [
        row.name for row in grid.select_rows(TABLES[1], "np-match,npmatch,CR, fullflex,supervised")
    ]
    assert names == ["NP-Match", "CR", "FullFlex", "supervised"]
    names = [row.name for row in grid.select_rows(TABLES[3], "fullmatch,fixmatch-eml-bce")]
    assert names == ["FullMatch", "FixMatch+EML(BCE)"]


@pytest.mark.parametrize(("number", "name"), [(1, "fulmatch"), (3, "fixmatch-eml-bc"), (2, "uda")])
def test_unknown_row(number: int, name: str) -> None:
    with pytest.raises(UserError, match=f"unknown row {name!r} of table {number}: expected some"):
        grid.select_rows(TABLES[number], name)


def test_unknown_full_row() -> None:
    message = r"or full-X for any X that has pseudo-labels; did you mean 'full-softmatch'"
    with pytest.raises(UserError, match=message):
        grid.select_rows(TABLES[1], "full-sofmatch")


def test_folds() -> None:
    assert grid.parse_folds("0-2") == (0, 1, 2)
    assert grid.parse_folds("2, 0,0-1") == (2, 0, 1)
    for wrong in ("", "a", "2-0", "-1"):
        with pytest.raises(UserError, match="expected numbers such as 0-2"):
            grid.parse_folds(wrong)


def test_config_is_the_published_one() -> None:
    for row in TABLES[1].rows:
        for cell in TABLES[1].cells:
            config = grid.config_for(row, cell, 2)
            paper = presets.paper(cell.data, cell.labels, row.algorithm)
            assert config.seed == 2
            assert config.algorithm == paper.algorithm
            assert (config.data, config.model, config.training) == (
                paper.data,
                paper.model,
                paper.training,
            )


def test_ablations_differ_and_the_last_is_fullmatch() -> None:
    specs = [row.spec() for row in grid.ABLATIONS]
    assert len({repr(spec) for spec in specs}) == 7
    assert specs[0].full is None
    assert specs[-1] == next(row for row in grid.METHODS if row.name == "FullMatch").spec()
    assert specs[-1] in [row.spec() for row in grid.SWEEP]


def test_keys_of_rows_are_unique() -> None:
    for table in TABLES.values():
        assert len({row.key for row in table.rows}) == len(table.rows)


def test_steps() -> None:
    row = grid.METHODS[0]
    assert grid.config_for(row, TableCell("cifar10", 40), 0, 7).training.steps == 7


@pytest.mark.parametrize("text", ["0,3-1", "3-1", "0-99999999999"])
def test_empty_and_huge_ranges_of_folds(text: str) -> None:
    with pytest.raises(UserError, match="is empty or has more than 1000 folds"):
        grid.parse_folds(text)


def test_empty_lists() -> None:
    with pytest.raises(UserError, match=r"--cells ',' is empty; .*omit --cells"):
        grid.select_cells(TABLES[1], ",")
    with pytest.raises(UserError, match="--algorithms ' , ' is empty"):
        grid.select_rows(TABLES[1], " , ")
