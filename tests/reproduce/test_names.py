"""Methods as people write them."""

import pytest

from fullmatch.algorithms import algorithm, full, names
from fullmatch.config import to_table
from fullmatch.data import DATASETS
from fullmatch.reproduce.grid import METHODS, TABLES, find_row
from fullmatch.reproduce.names import algorithm_name, data_name, method_name


@pytest.mark.parametrize(
    ("name", "options", "written"),
    [
        ("fixmatch", None, "FixMatch"),
        ("npmatch", None, "NP-Match"),
        ("supervised", None, "supervised"),
        ("fixmatch", {}, "FullMatch"),
        ("flexmatch", {}, "FullFlex"),
        ("softmatch", {}, "Full-SoftMatch"),
        ("fixmatch", {"adaptive_negative": False}, "FixMatch + EML"),
        ("flexmatch", {"entropy_meaning": False}, "FlexMatch + ANL"),
    ],
)
def test_method_name(name: str, options: dict[str, bool] | None, written: str) -> None:
    spec = algorithm(name) if options is None else full(algorithm(name), **options)
    assert method_name({"name": name} | to_table(spec)) == written


def test_rows_of_the_paper_have_their_names() -> None:
    assert [algorithm_name(row.algorithm) for row in METHODS] == [row.name for row in METHODS]


def test_names_of_other_methods_leave_folders_as_they_were() -> None:
    paper = {row.algorithm for row in METHODS}
    for name in set(names()) - paper - {"full-fixmatch", "full-flexmatch"}:
        row = find_row(TABLES[1], name)
        assert row.name != name or name == "supervised"
        assert row.key == name.replace("_", "-")


def test_every_data_set_has_a_written_name() -> None:
    assert all(data_name(name) != name for name in DATASETS)
