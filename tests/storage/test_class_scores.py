"""Recalls and confusions of many classes are beside result.json, and read back into it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fullmatch.storage.class_scores import JSON_CLASSES, fill_confusion
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.result import FinalScores, RunResult
from fullmatch.storage.run_folder import RunFolder
from tests.storage.test_result import RESULT, SCORES


def with_classes(count: int) -> RunResult:
    scores = replace(
        SCORES,
        per_class=(None, *[0.5] * (count - 1)),
        confusion=tuple(tuple(int(a == b) for b in range(count)) for a in range(count)),
    )
    classes = tuple(f"class {at}" for at in range(count))
    none: FinalScores | None = None
    return replace(
        RESULT, classes=classes, labels_by_class=(1,) * count, teacher=scores, student=none
    )


@pytest.mark.no_cover  # it would take twice as long
def test_result_of_many_classes_is_small_and_reads_the_same(tmp_path: Path) -> None:
    folder, result = RunFolder(tmp_path), with_classes(1000)
    folder.write_result(result)
    assert folder.result.stat().st_size < 60_000  # most of it the names of the classes
    assert folder.read_result() == result
    assert folder.scores.stat().st_size < 40_000
    assert folder.scores in folder.handed_over
    assert folder.changed_files() == []
    assert "confusion" not in json.loads(folder.result.read_text())["teacher"]


def test_result_of_few_classes_is_one_file(tmp_path: Path) -> None:
    folder, result = RunFolder(tmp_path), with_classes(JSON_CLASSES)
    folder.write_result(result)
    assert not folder.scores.exists()
    assert folder.read_result() == result


def test_missing_or_damaged_tensors_are_one_line(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_result(with_classes(JSON_CLASSES + 1))
    whole = folder.scores.read_bytes()
    folder.scores.write_bytes(whole[:-1])
    with pytest.raises(DamagedFile, match=r"result.json is damaged .*write it again"):
        folder.read_result()
    folder.scores.unlink()
    with pytest.raises(DamagedFile, match=r"scores\.safetensors is missing"):
        folder.read_result()


def test_confusion_must_fit_the_classes() -> None:
    assert fill_confusion(np.array([[1, 0, 5]]), 2) == [[0, 0], [5, 0]]
    for entries in ([[2, 0, 1]], [[0, 0, -1]], [0, 0, 1], [[0, 0, 0.5]]):
        with pytest.raises(ValueError, match="confusion"):
            fill_confusion(np.array(entries), 2)


def test_numbers_from_tensors_are_checked_too(tmp_path: Path) -> None:
    folder, result = RunFolder(tmp_path), with_classes(JSON_CLASSES + 1)
    assert result.teacher is not None
    wrong = replace(result.teacher, per_class=(2.0,) * (JSON_CLASSES + 1))
    folder.write_result(replace(result, teacher=wrong))
    with pytest.raises(DamagedFile, match=r"per_class is 2\.0, not between"):
        folder.read_result()
