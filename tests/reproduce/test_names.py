"""Methods as people write them."""

import pytest

from fullmatch.algorithms import algorithm, full
from fullmatch.config import to_table
from fullmatch.reproduce.names import method_name


@pytest.mark.parametrize(
    ("name", "options", "written"),
    [
        ("fixmatch", None, "FixMatch"),
        ("npmatch", None, "NP-Match"),
        ("supervised", None, "supervised"),
        ("fixmatch", {}, "FullMatch"),
        ("flexmatch", {}, "FullFlex"),
        ("softmatch", {}, "Full-softmatch"),
        ("fixmatch", {"adaptive_negative": False}, "FixMatch + EML"),
        ("flexmatch", {"entropy_meaning": False}, "FlexMatch + ANL"),
    ],
)
def test_method_name(name: str, options: dict[str, bool] | None, written: str) -> None:
    spec = algorithm(name) if options is None else full(algorithm(name), **options)
    assert method_name({"name": name} | to_table(spec)) == written
