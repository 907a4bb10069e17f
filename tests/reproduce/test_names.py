"""Methods as people write them."""

import pytest

from fullmatch.algorithms import algorithm, full
from fullmatch.config import to_table
from fullmatch.reproduce.names import label


@pytest.mark.parametrize(
    ("name", "options", "words"),
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
def test_label(name: str, options: dict[str, bool] | None, words: str) -> None:
    spec = algorithm(name) if options is None else full(algorithm(name), **options)
    assert label({"name": name} | to_table(spec)) == words
