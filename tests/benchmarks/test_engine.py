"""The table of steps per second, from lines as measured on a GPU."""

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine
from fullmatch.experiment.inputs import load_source
from fullmatch.experiment.settings import resolve


def line(case: str, speed: float, data: str = "cifar10", labeled: int = 64) -> dict[str, Any]:
    stages = ("step", "augmentation", "forward", "backward", "update")
    return {
        "case": case,
        "data": data,
        "model": "wrn-28-2",
        "labeled_images": labeled,
        "unlabeled_images": 448,
        "device": "some GPU",
        "steps_per_second": speed,
        "milliseconds": dict.fromkeys(stages, 1.0),
        "milliseconds_waited_for_pictures": 0.0,
        "seconds_to_first_step": 30.0,
        "date": "2026-01-01",
        "commit": "abc",
    }


def test_cost_is_relative_to_fixmatch_on_the_same_data() -> None:
    rows = [line("fixmatch", 100), line("remixmatch", 50), line("larger", 20, "stl10")]
    table = engine.format_page([*rows, line("uda", 105, labeled=40)])
    assert "| remixmatch | 64 + 448 | 50.0 | 2.00 |" in table
    assert "| fixmatch | 64 + 448 | 100.0 | 1.00 |" in table
    assert "| larger | 64 + 448 | 20.0 | - |" in table
    assert "| uda | 40 + 448 | 105.0 | - |" in table


def test_every_algorithm_has_a_case() -> None:
    cases = engine.list_cases()
    assert {"fixmatch", "fullmatch", "fullflex", "ups_offline", "full-semco"} <= cases.keys()
    assert len(cases) == 44 + len(engine.LARGER)


def test_newest_line_counts(tmp_path: Path) -> None:
    ledger = tmp_path / "engine.jsonl"
    ledger.write_text("\n".join(json.dumps(line("fixmatch", speed)) for speed in (90, 110)))
    assert [row["steps_per_second"] for row in engine.read_ledger(ledger).values()] == [110]


def test_failing_case_is_reported_and_does_not_stop_the_others() -> None:
    small = ("model.name=wrn-10-1", "training.batch=2", "training.ratio=1", "training.threads=1")
    cases = {name: engine.Case("digits", name, small) for name in ("nosuch", "fixmatch", "uda")}
    results = dict(engine.measure_all(cases.items(), processes=2))
    assert "nosuch" in results["nosuch"]
    assert results["fixmatch"]["steps_per_second"] > 0
    assert results["uda"]["steps_per_second"] > 0


def test_photographs_can_be_used_for_training(tmp_path: Path) -> None:
    folder = engine.write_photographs(tmp_path, count=120, side=32)
    source = load_source(resolve(data=str(folder), algorithm="fixmatch"))
    assert len(source.classes) == 10
    assert len(source.images) == 120
    assert source.images.shape == (3, 32, 32)


def test_other_processes_are_paused_while_one_is_timed() -> None:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    process.start()
    try:
        with engine.pause([process]):
            assert state(process.pid) == "T"
        assert state(process.pid) != "T"
    finally:
        process.kill()
        process.join()


def state(pid: int | None) -> str:
    """The state of a process on Linux: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "fixmach"], "unknown case 'fixmach'; did you mean 'fixmatch'?"),
        (["--processes", "0"], "--processes is 0, expected 1 or more"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        engine.main(words)
    assert message in capsys.readouterr().err
