"""The table of steps a second, from lines as a GPU leaves them."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine


def line(case: str, speed: float, data: str = "cifar10") -> dict[str, Any]:
    stages = ("step", "augmentation", "forward", "backward", "update")
    return {
        "case": case,
        "data": data,
        "device": "some GPU",
        "steps_per_second": speed,
        "milliseconds": dict.fromkeys(stages, 1.0),
        "seconds_to_first_step": 30.0,
        "date": "2026-01-01",
        "commit": "abc",
    }


def test_cost_is_beside_fixmatch_and_only_on_the_same_data() -> None:
    rows = [line("fixmatch", 100), line("remixmatch", 50), line("larger", 20, "stl10")]
    table = engine.page(rows)
    assert "| remixmatch | 50.0 | 2.00 |" in table
    assert "| fixmatch | 100.0 | 1.00 |" in table
    assert "| larger | 20.0 | - |" in table


def test_every_algorithm_has_a_case() -> None:
    found = engine.cases()
    assert {"fixmatch", "fullmatch", "fullflex", "ups_offline", "full-semco"} <= found.keys()
    assert len(found) == 36 + len(engine.LARGER)


def test_newest_line_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "engine.jsonl"
    ledger.write_text("\n".join(json.dumps(line("fixmatch", speed)) for speed in (90, 110)))
    monkeypatch.setattr(engine, "LEDGER", ledger)
    assert [row["steps_per_second"] for row in engine.known().values()] == [110]


def test_a_failing_case_is_told_and_does_not_stop_the_others() -> None:
    small = ("model.name=wrn-10-1", "training.batch=2", "training.ratio=1", "training.threads=1")
    found = engine.wave(
        [("wrong", ("digits", "nosuch", small)), ("right", ("digits", "fixmatch", small))]
    )
    assert "nosuch" in found["wrong"]
    assert found["right"]["steps_per_second"] > 0
