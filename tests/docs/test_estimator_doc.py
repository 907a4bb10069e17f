"""The examples in docs/estimator.md work as described, and its numbers match the code."""

import re
from pathlib import Path

import pytest

from benchmarks import estimator_features
from fullmatch.models.frozen import DIMENSIONS
from fullmatch.models.landmarks import LANDMARKS, UNITS
from tests.patterns import find_blocks

TEXT = (Path(__file__).parents[2] / "docs" / "estimator.md").read_text(encoding="utf-8")
PICTURES, PHOTOS, FEATURES = find_blocks("python", TEXT)


def test_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PICTURES, {})
    assert re.match(r"\[\d \d \d\] 0\.\d+", capsys.readouterr().out)


def test_photos(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PHOTOS, {})
    assert capsys.readouterr().out == "['temple' 'flower' 'temple' 'flower']\n"


def test_features(capsys: pytest.CaptureFixture[str]) -> None:
    exec(FEATURES, {})
    *strategies, score = capsys.readouterr().out.splitlines()
    assert [line.split(" 0.")[0] for line in strategies] == [
        "labels only",
        "propagated labels",
        "propagated labels, then training",
    ]
    assert sum(line.endswith("*") for line in strategies) == 1
    assert float(score) > 0.85


def test_numbers_match_the_code() -> None:
    assert f"a\n  factor of over {UNITS:g}" in TEXT
    assert f"to {LANDMARKS} landmarks" in TEXT
    assert f"reduced to {DIMENSIONS} dimensions" in TEXT
    for name, labels in estimator_features.LABELS.items():
        assert f"{name}, {labels} labels" in TEXT
    for method in estimator_features.METHODS:
        assert f"| {method} | " in TEXT
