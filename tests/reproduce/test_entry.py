"""An entry survives the trip to JSON and back, and wrong values are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from fullmatch.reproduce.entry import LedgerCurve, dump_entry, entry_table, parse_entry
from tests.reproduce.conftest import row_named
from tests.reproduce.test_lines import make_entry

RUNS = Path(__file__).parents[2] / "docs" / "results" / "runs"
EXAMPLE = json.loads(dump_entry(make_entry(row_named("FixMatch"), 0, 0.8)))


def test_recorded_entries_are_read_and_written_unchanged() -> None:
    paths = sorted(RUNS.glob("*.json"))
    assert len(paths) > 100
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert dump_entry(parse_entry(json.loads(text))) == text, path.name


def test_one_line_per_fact_and_curve() -> None:
    entry = make_entry(
        row_named("FixMatch"), 0, 0.8, curves={"k": LedgerCurve((1, 2), (3, float("nan")))}
    )
    lines = dump_entry(entry).splitlines()
    assert '  "k": [[1, 2], [3, NaN]]' in lines
    assert ' "steps": 100,' in lines
    parsed = parse_entry(json.loads(dump_entry(entry)))
    assert dump_entry(parsed) == dump_entry(entry)


def test_scores_that_were_not_measured_are_left_out() -> None:
    table = EXAMPLE | {"scores": {"teacher": {"last": 0.5, "interval": [0.4, 0.6], "ece": 0.1}}}
    entry = parse_entry(table)
    assert entry.teacher is not None
    assert entry.teacher.top5 is None
    written = entry_table(entry)["scores"]["teacher"]
    assert written == {"last": 0.5, "interval": (0.4, 0.6), "ece": 0.1, "per_class": ()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": "8"}, "steps is not an integer"),
        ({"commit": 3}, "commit is not a text"),
        ({"config": []}, "config is not a table"),
        ({"config": {"data": {}, "algorithm": {}, "model": 0}}, "config.seed is missing"),
        ({"config": EXAMPLE["config"] | {"data": {}}}, "config.data.name is missing"),
        ({"config": EXAMPLE["config"] | {"seed": "0"}}, "config.seed is not an integer"),
        ({"scores": {"teacher": {}}}, "scores.teacher.last is missing"),
        ({"curves": []}, "curves is not a table"),
        ({"curves": {"loss": [[1], [1.0], []]}}, "curves.loss is not a list of steps"),
        ({"curves": {"loss": [[1, 2], [1.0]]}}, "curves.loss does not have one number per step"),
        ({"curves": {"loss": [[1], ["x"]]}}, "curves.loss does not have one number per step"),
    ],
)
def test_wrong_values(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_entry(EXAMPLE | change)


@pytest.mark.parametrize("name", sorted(EXAMPLE))
def test_every_field_is_required(name: str) -> None:
    table = {key: value for key, value in EXAMPLE.items() if key != name}
    with pytest.raises(ValueError, match=name):
        parse_entry(table)
