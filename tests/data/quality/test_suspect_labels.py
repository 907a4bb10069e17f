"""Labels that look wrong are found, and right ones are left alone."""

import numpy as np
import pytest

from fullmatch.data.quality.suspect_labels import (
    MIN_LABELS,
    ask_neighbors,
    find_suspect_labels,
    hold_out_logits,
    predict_held_out,
)


def make_classes(
    per_class: int, classes: int = 3, noise: float = 0.5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1 around one center per class, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(per_class * classes) % classes
    rows = rng.normal(size=(classes, 24))[labels] + noise * rng.normal(size=(len(labels), 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), labels


@pytest.mark.parametrize(("per_class", "classes"), [(16, 2), (20, 2), (20, 3), (12, 10)])
def test_swapped_labels_are_found(per_class: int, classes: int) -> None:
    rows, labels = make_classes(per_class, classes)
    right = labels.copy()
    swapped = [1, len(labels) - 1]
    labels[swapped] = (labels[swapped] + 1) % classes
    suspects = find_suspect_labels(rows, labels)
    assert {suspect.at for suspect in suspects} == set(swapped)
    assert all(suspect.suggested == right[suspect.at] for suspect in suspects)
    assert all(suspect.probability > 0.5 for suspect in suspects)
    assert find_suspect_labels(rows, labels) == suspects


def test_right_labels_are_left_alone() -> None:
    assert find_suspect_labels(*make_classes(30)) == []


def test_classes_that_cannot_be_told_apart_have_few_suspects() -> None:
    """A classifier that is often wrong is not believed."""
    rows, labels = make_classes(40, noise=6.0)
    predicted = predict_held_out(rows, labels, 0).argmax(axis=1)
    assert (predicted != labels).mean() > 0.3
    assert len(find_suspect_labels(rows, labels)) <= 3


def test_unknown_labels_and_small_classes_are_not_judged() -> None:
    rows, labels = make_classes(20)
    labels[np.flatnonzero(labels == 2)[MIN_LABELS - 1 :]] = -1
    labels[0] = 1
    suspects = find_suspect_labels(rows, labels)
    assert [suspect.at for suspect in suspects] == [0]
    assert find_suspect_labels(rows, np.full(60, -1)) == []
    assert find_suspect_labels(rows, np.zeros(60, np.int64)) == []
    assert find_suspect_labels(rows[:0], labels[:0]) == []


def test_no_label_takes_part_in_its_own_judgment() -> None:
    rows, labels = make_classes(15)
    before = hold_out_logits(rows, labels, 3.0, seed=0)
    assert (before.argmax(axis=1) == labels).mean() > 0.95
    labels[4] = (labels[4] + 1) % 3
    assert hold_out_logits(rows, labels, 3.0, seed=0)[4].argmax() != labels[4]
    assert ask_neighbors(rows, labels)[4] != labels[4]


def test_many_labels_take_a_bounded_time() -> None:
    """Each classifier is fitted on a sample, and every label is judged all the same."""
    rows, labels = make_classes(1200, classes=3)
    labels[7] = (labels[7] + 1) % 3
    assert 7 in [suspect.at for suspect in find_suspect_labels(rows, labels)]
