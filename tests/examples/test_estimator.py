"""The estimator's example: unlabeled digits improve the accuracy."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "estimator.py"


@pytest.mark.no_cover  # it would take twice as long
def test_unlabeled_digits_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
    linear, pictures, features = runpy.run_path(str(EXAMPLE))["compare"](steps=350)
    assert 0.8 < linear < min(pictures, features)
    assert capsys.readouterr().out.count("on held-out labels") == 3
