"""The files of a run: replaced at once, truncated to a checkpoint."""

from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.run_folder import RunFolder


def test_metrics_are_truncated(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_records() == []
    assert folder.metrics_size() == 0
    folder.truncate_metrics(10)  # there is no file
    first = LogRecord(1, {})
    folder.append_record(first)
    size = folder.metrics_size()
    folder.append_record(LogRecord(2, {"loss": float("nan")}))
    with folder.metrics.open("a") as log:
        log.write('{"step": 3, "lo')  # half written by a run that was killed
    folder.truncate_metrics(size)
    assert folder.read_records() == [first]
    folder.truncate_metrics(1000)
    assert folder.read_records() == [first]


def test_files_are_replaced_at_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_text(folder.result, "one")
    folder.write_text(folder.result, "two")
    assert folder.result.read_text() == "two"
    assert list(tmp_path.iterdir()) == [folder.result]


def test_an_unfinished_run_has_no_result(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "my run")
    folder.path.mkdir()
    with pytest.raises(UserError, match=r"not finished; resume with: fullmatch resume '.*my run'"):
        folder.read_result()


def test_rollbacks(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_rollbacks() == []
    folder.write_rollbacks([5, 10])
    assert folder.read_rollbacks() == [5, 10]
    for text in ("[-1]", f"{[1] * 5000}", "{}", '["5"]', "[true]", "[5", "[" * 100_000):
        folder.rollbacks.write_text(text)
        with pytest.raises(DamagedFile, match=r"rollbacks\.json is damaged \(.+\); train again"):
            folder.read_rollbacks()
