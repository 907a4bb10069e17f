"""Pictures are labeled one after another, and labels can be undone."""

from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.inference.suggestion import Suggestion
from fullmatch.labeling.label_table import LabelTable, default_table, list_pictures
from fullmatch.labeling.queue import LabelQueue, OutdatedRequest
from tests.own_pictures import clean_folder


@pytest.fixture
def queue(tmp_path: Path) -> LabelQueue:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1, size=16)
    table = LabelTable(default_table(home), list_pictures(home))
    return LabelQueue(table, [Suggestion(name, "", None, "why") for name in table.unlabeled()])


def test_label_skip_undo(queue: LabelQueue) -> None:
    first, second, third = (picture.name for picture in queue.pictures)
    queue.label(0, "grass")
    queue.skip(1)
    queue.label(2, "water")
    assert queue.table.unlabeled() == [second]
    state = queue.state()
    assert (state.number, state.total, state.labeled) == (3, 3, 2)
    assert state.name is None
    assert state.last == "water"
    queue.undo(3)
    queue.undo(2)
    assert queue.state().name == Path(second).name
    assert queue.table.unlabeled() == [second, third]
    queue.undo(1)
    assert first in queue.table.unlabeled()
    assert queue.state().last is None
    with pytest.raises(UserError, match="nothing to undo"):
        queue.undo(0)


def test_a_key_pressed_twice_labels_one_picture(queue: LabelQueue) -> None:
    queue.label(0, "grass")
    for repeat in (lambda: queue.label(0, "grass"), lambda: queue.skip(0), lambda: queue.undo(0)):
        with pytest.raises(OutdatedRequest):
            repeat()
    assert queue.answers == ["grass"]
    queue.skip(1)
    queue.skip(2)
    with pytest.raises(OutdatedRequest):
        queue.skip(3)


def test_new_classes(queue: LabelQueue) -> None:
    with pytest.raises(UserError, match="no class 'owl'"):
        queue.label(0, "owl")
    queue.add_class(" owl ")
    queue.label(0, "owl")
    with pytest.raises(UserError, match="exists already"):
        queue.add_class("owl")
    assert queue.state().classes == ["brick", "grass", "water", "owl"]


def test_a_label_that_was_not_written_does_not_count(queue: LabelQueue) -> None:
    queue.table.path = queue.table.path.parent / "no folder" / "labels.csv"
    with pytest.raises(UserError, match="cannot write"):
        queue.label(0, "grass")
    assert queue.answers == []
    assert len(queue.table.unlabeled()) == 3
