"""metrics.jsonl: records survive a kill, and a damaged line is one message."""

import json
import math
from pathlib import Path

import pytest

from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.metrics_log import LogRecord, parse_record, read_records
from fullmatch.storage.run_folder import RunFolder

RECORDS = [
    LogRecord(10, {"loss": 2.5, "selected": 0.25}, 1.5),
    LogRecord(20, {"loss": 1.5}, 3.0, {"student": {"top1": 0.5}, "teacher": {"top1": 0.75}}),
    LogRecord(20, {}, 3.0, {"teacher": {"top1": 0.75, "top5": 1.0, "ece": 0.1}}),
]


def test_round_trip(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_records() == []
    for record in RECORDS:
        folder.append_record(record)
    assert folder.read_records() == read_records(folder.metrics) == RECORDS


def test_lines_are_flat() -> None:
    """Other programs read this file too."""
    assert json.loads(RECORDS[1].to_line()) == {
        "step": 20,
        "loss": 1.5,
        "evaluation": {"student": {"top1": 0.5}, "teacher": {"top1": 0.75}},
        "seconds": 3.0,
    }
    assert "evaluation" not in json.loads(RECORDS[0].to_line())


def test_nan_is_kept() -> None:
    record = parse_record(LogRecord(3, {"loss": math.nan, "k": math.inf}).to_line())
    assert math.isnan(record.metrics["loss"])
    assert record.metrics["k"] == math.inf


def test_the_last_line_may_be_half_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    whole = "".join(record.to_line() + "\n" for record in RECORDS)
    start = whole.index(RECORDS[2].to_line())
    for end in range(start, len(whole) + 1):
        path.write_text(whole[:end], encoding="utf-8")
        complete = end >= len(whole) - 1  # only the end of the line is missing
        assert read_records(path) == (RECORDS if complete else RECORDS[:2])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "a line is not a table"),
        ("{}", "a line has no step"),
        ('{"step": "1"}', "a line has no step"),
        ('{"step": true}', "a line has no step"),
        ('{"step": -1}', "a line has no step"),
        ('{"step": 1, "loss": "2"}', "loss is not a number"),
        ('{"step": 1, "loss": true}', "loss is not a number"),
        ('{"step": 1, "loss": null}', "loss is not a number"),
        (f'{{"step": 1, "loss": 1{"0" * 400}}}', "loss is too large"),
        ('{"step": 1, "seconds": NaN}', "seconds is not a time"),
        ('{"step": 1, "evaluation": []}', "evaluation is not a table"),
        ('{"step": 1, "evaluation": {"teacher": 1}}', "evaluation is not a table"),
        ('{"step": 1, "evaluation": {"teacher": {}}}', "an evaluation has no top1"),
        (
            '{"step": 1, "evaluation": {"teacher": {"top1": "1"}}}',
            "teacher.top1 is not a number",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_line_is_one_message(tmp_path: Path, line: str, reason: str) -> None:
    folder = RunFolder(tmp_path)
    folder.metrics.write_text(f"{line}\n{RECORDS[0].to_line()}\n", encoding="utf-8")
    with pytest.raises(DamagedFile) as error:
        folder.read_records()
    assert str(error.value) == f"{folder.metrics} is damaged ({reason}); train again"


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.metrics.write_bytes(b'\xff{"step": 1}\n')
    message = r"metrics\.jsonl is damaged \(not text in UTF-8\); train again$"
    with pytest.raises(DamagedFile, match=message):
        folder.read_records()
