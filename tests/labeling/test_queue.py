"""Pictures one after another, and back."""

from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.inference.suggestion import Suggestion
from fullmatch.labeling.labels import Labels, pictures_of, table_of
from fullmatch.labeling.queue import Queue, Stale
from tests.own_pictures import clean_folder


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1, size=16)
    labels = Labels(table_of(home, None), pictures_of(home))
    return Queue(labels, [Suggestion(name, "", None, "why") for name in labels.unlabeled()])


def test_label_skip_undo(queue: Queue) -> None:
    first, second, third = (one.name for one in queue.pictures)
    queue.label(0, "grass")
    queue.skip(1)
    queue.label(2, "water")
    assert queue.labels.unlabeled() == [second]
    state = queue.state()
    assert (state["number"], state["total"], state["labeled"]) == (3, 3, 2)
    assert state["name"] is None and state["last"] == "water"
    queue.undo(3)
    queue.undo(2)
    assert queue.state()["name"] == Path(second).name
    assert queue.labels.unlabeled() == [second, third]
    queue.undo(1)
    assert first in queue.labels.unlabeled() and queue.state()["last"] is None
    with pytest.raises(UserError, match="nothing to undo"):
        queue.undo(0)


def test_a_key_pressed_twice_labels_one_picture(queue: Queue) -> None:
    queue.label(0, "grass")
    for again in (lambda: queue.label(0, "grass"), lambda: queue.skip(0), lambda: queue.undo(0)):
        with pytest.raises(Stale):
            again()
    assert queue.given == ["grass"]
    queue.skip(1)
    queue.skip(2)
    with pytest.raises(Stale):
        queue.skip(3)


def test_new_classes(queue: Queue) -> None:
    with pytest.raises(UserError, match="no class 'owl'"):
        queue.label(0, "owl")
    queue.add_class(" owl ")
    queue.label(0, "owl")
    with pytest.raises(UserError, match="there already"):
        queue.add_class("owl")
    assert queue.state()["classes"] == ["brick", "grass", "water", "owl"]


def test_a_label_that_was_not_written_does_not_count(queue: Queue) -> None:
    queue.labels.table = queue.labels.table.parent / "no folder" / "labels.csv"
    with pytest.raises(UserError, match="cannot write"):
        queue.label(0, "grass")
    assert queue.given == [] and len(queue.labels.unlabeled()) == 3
