"""The estimator's example: unlabeled digits improve the accuracy."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "estimator.py"


def test_unlabeled_digits_help() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
    linear, fullmatch = runpy.run_path(str(EXAMPLE))["compare"](steps=350)
    assert 0.8 < linear < fullmatch
