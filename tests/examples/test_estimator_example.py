"""The estimator's example learns more from unlabeled digits than labels alone tell."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "estimator.py"


def test_unlabeled_digits_help() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
    alone, together = runpy.run_path(str(EXAMPLE))["accuracies"](steps=350)
    assert 0.8 < alone < together
