"""Linear heads on embeddings: against scikit-learn, and on clusters whose labels are known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fullmatch.experiment.probe_heads import (
    STRENGTHS,
    Array,
    Labels,
    LinearHead,
    NeighborGraph,
    balance,
    choose_strength,
    columns,
    fit_clusters,
    fit_logistic,
    fit_soft,
    softmax,
    stratified_folds,
    unit_rows,
)


def clusters(
    counts: tuple[int, ...], spread: float = 0.15, width: int = 12, seed: int = 0
) -> tuple[Array, Labels]:
    """Rows of length 1 around one direction per class, and their classes, in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    noise = spread * rng.normal(size=(len(labels), width))
    return unit_rows(np.eye(width)[labels] + noise), labels


def first_of_each_class(labels: Labels, count: int = 1) -> Labels:
    return np.concatenate([np.flatnonzero(labels == c)[:count] for c in np.unique(labels)])


def predicted(head: LinearHead, rows: Array) -> Labels:
    return np.asarray(head.logits(rows).argmax(axis=1))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_logistic_regression_is_that_of_scikit_learn(classes: int) -> None:
    rows, labels = clusters((10,) * classes, spread=0.5)
    new, _ = clusters((20,) * classes, spread=0.5, seed=1)
    expected = LogisticRegression(C=3.0, max_iter=1000).fit(rows, labels)
    head = fit_logistic(rows, labels, classes, 3.0)
    assert head.weight.shape == (classes, 12)
    assert head.bias.shape == (classes,)
    assert np.allclose(head.probabilities(new), expected.predict_proba(new), atol=1e-5)


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_class_without_a_label_is_never_predicted(missing: int, strength: float) -> None:
    rows, labels = clusters((10, 10, 10), spread=0.4)
    present = labels != missing
    head = fit_logistic(rows[present], labels[present], 3, strength)
    probabilities = head.probabilities(rows)
    assert probabilities[:, missing].max() < 0.01
    expected = LogisticRegression(C=strength, max_iter=1000).fit(rows[present], labels[present])
    assert np.array_equal(probabilities.argmax(axis=1), expected.predict(rows))


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_soft_targets_that_are_labels_give_logistic_regression(strength: float) -> None:
    rows, labels = clusters((8, 12, 10), spread=0.5)
    weights = np.ones(len(rows), np.float32)
    head = fit_soft(rows, np.eye(3, dtype=np.float32)[labels], weights, strength)
    expected = fit_logistic(rows, labels, 3, strength)
    assert np.allclose(head.probabilities(rows), expected.probabilities(rows), atol=5e-3)


def test_the_weight_of_a_row_counts_it_so_often() -> None:
    rows, labels = clusters((8, 12, 10), spread=0.5)
    times = np.random.default_rng(0).integers(1, 4, len(rows))
    targets = np.eye(3, dtype=np.float32)[labels]
    weighted = fit_soft(rows, targets, times.astype(np.float32), 1.0)
    repeated = fit_logistic(np.repeat(rows, times, axis=0), np.repeat(labels, times), 3, 1.0)
    assert np.allclose(weighted.probabilities(rows), repeated.probabilities(rows), atol=5e-3)


def test_uncertain_targets_give_uncertain_predictions() -> None:
    rows, labels = clusters((10, 10))
    targets = np.full((20, 2), 0.5, np.float32)
    head = fit_soft(rows, targets, np.ones(20, np.float32), 10.0)
    assert np.allclose(head.probabilities(rows), 0.5, atol=1e-3)
    targets = np.where(np.eye(2)[labels] == 1, 0.8, 0.2).astype(np.float32)
    head = fit_soft(rows, targets, np.ones(20, np.float32), 1000.0)
    own = head.probabilities(rows)[np.arange(20), labels]
    assert np.allclose(own, 0.8, atol=0.05)


@pytest.mark.parametrize("prior", [(0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (0.6, 0.4, 0.0)])
def test_balanced_predictions_reach_the_prior(prior: tuple[float, ...]) -> None:
    logits = np.random.default_rng(0).normal(size=(200, 3))
    wanted = np.asarray(prior, np.float32)
    balanced = balance(softmax(logits), wanted)
    assert np.allclose(balanced.mean(axis=0), wanted, atol=1e-3)
    assert np.allclose(balanced.sum(axis=1), 1, atol=1e-5)
    assert np.isfinite(balanced).all()


def test_balanced_predictions_stay_as_they_are() -> None:
    probabilities = softmax(np.random.default_rng(0).normal(size=(50, 3)))
    once = balance(probabilities, np.full(3, 1 / 3, np.float32))
    again = balance(once, np.full(3, 1 / 3, np.float32))
    assert np.allclose(once, again, atol=1e-4)


def test_one_label_per_class_spreads_over_its_cluster() -> None:
    rows, labels = clusters((30, 30))
    labeled = first_of_each_class(labels)
    prior = np.array([0.5, 0.5], np.float32)
    probabilities = NeighborGraph(rows).propagate(labeled, labels[labeled], prior)
    assert probabilities.shape == (60, 2)
    assert np.array_equal(probabilities.argmax(axis=1), labels)
    head = fit_clusters(rows, labeled, labels[labeled], np.setdiff1d(np.arange(60), labeled), prior)
    assert np.array_equal(predicted(head, rows), labels)


def test_uneven_clusters_follow_an_uneven_prior() -> None:
    rows, labels = clusters((40, 15, 5))
    labeled = first_of_each_class(labels, 2)
    prior = (np.array([40, 15, 5]) / 60).astype(np.float32)
    probabilities = NeighborGraph(rows).propagate(labeled, labels[labeled], prior)
    assert np.mean(probabilities.argmax(axis=1) == labels) > 0.95
    assert np.allclose(probabilities.mean(axis=0), prior, atol=0.02)
    unlabeled = np.setdiff1d(np.arange(60), labeled)
    head = fit_clusters(rows, labeled, labels[labeled], unlabeled, prior)
    assert np.mean(predicted(head, rows) == labels) > 0.95


def test_labels_spread_where_logistic_regression_fails() -> None:
    """Two arcs: the neighbors of a label say more than its direction."""
    angles = np.linspace(0, np.pi * 0.8, 60)
    arcs = [(np.cos(a), np.sin(a), side) for side in (-0.4, 0.4) for a in angles]
    rows, labels = unit_rows(np.array(arcs)), np.repeat([0, 1], 60)
    labeled = np.array([0, 119])  # opposite ends
    prior = np.array([0.5, 0.5], np.float32)
    spread = NeighborGraph(rows).propagate(labeled, labels[labeled], prior, iterations=400)
    accuracy = np.mean(spread.argmax(axis=1) == labels)
    head = fit_logistic(rows[labeled], labels[labeled], 2, 10.0)
    assert accuracy > np.mean(predicted(head, rows) == labels) + 0.1


def test_a_class_without_a_label_is_left_out_of_both() -> None:
    rows, labels = clusters((20, 20, 20))
    labeled = first_of_each_class(labels, 3)
    labeled = labeled[labels[labeled] != 1]
    prior = np.array([0.5, 0.0, 0.5], np.float32)
    probabilities = NeighborGraph(rows).propagate(labeled, labels[labeled], prior)
    assert np.isfinite(probabilities).all()
    assert not probabilities[:, 1].any()
    unlabeled = np.setdiff1d(np.arange(60), labeled)
    head = fit_clusters(rows, labeled, labels[labeled], unlabeled, prior)
    assert np.isfinite(head.weight).all()
    assert not balance(head.probabilities(rows), prior)[:, 1].any()


def test_few_rows_have_fewer_neighbors() -> None:
    rows, labels = clusters((2, 2))
    labeled = first_of_each_class(labels)
    prior = np.array([0.5, 0.5], np.float32)
    probabilities = NeighborGraph(rows).propagate(labeled, labels[labeled], prior)
    assert np.array_equal(probabilities.argmax(axis=1), labels)


def test_identical_rows_are_no_trouble() -> None:
    rows = np.repeat(np.eye(4, dtype=np.float32)[:2], 15, axis=0)
    prior = np.array([0.5, 0.5], np.float32)
    probabilities = NeighborGraph(rows).propagate(np.array([0, 15]), np.array([0, 1]), prior)
    assert np.array_equal(probabilities.argmax(axis=1), np.repeat([0, 1], 15))


def test_strength_is_one_of_the_list_and_the_same_every_time() -> None:
    rows, labels = clusters((8, 8, 8), spread=0.6)
    strengths = {choose_strength(rows, labels, 3, seed=0) for _ in range(3)}
    assert len(strengths) == 1
    assert strengths <= set(STRENGTHS)


def test_clear_classes_get_less_regularization_than_vague_ones() -> None:
    clear, labels = clusters((15, 15), spread=0.05)
    vague, vague_labels = clusters((15, 15), spread=0.9)
    assert choose_strength(clear, labels, 2, seed=0) == max(STRENGTHS)
    assert choose_strength(vague, vague_labels, 2, seed=0) < max(STRENGTHS)


def test_one_label_of_a_class_cannot_be_held_out() -> None:
    rows, labels = clusters((5, 1))
    assert stratified_folds(labels, folds=5, repeats=2, seed=0) == []
    assert choose_strength(rows, labels, 2, seed=0) == 10.0


def test_folds_hold_out_every_label_of_every_class() -> None:
    labels = np.repeat([0, 1, 3], [4, 6, 9])  # no label of class 2
    pairs = stratified_folds(labels, folds=4, repeats=2, seed=0)
    assert len(pairs) == 8
    for training, held_out in pairs:
        assert set(labels[training]) == set(labels[held_out]) == {0, 1, 3}
        assert sorted([*training, *held_out]) == list(range(19))
    for repeat in (pairs[:4], pairs[4:]):
        assert sorted(np.concatenate([held_out for _, held_out in repeat])) == list(range(19))


def test_columns_of_parts() -> None:
    assert [columns((3, 2, 4), part) for part in range(3)] == [
        slice(0, 3),
        slice(3, 5),
        slice(5, 9),
    ]


def test_softmax_of_large_logits_is_finite() -> None:
    expected = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert np.allclose(softmax(np.array([[1e4, 0.0], [-1e4, -1e4]])), expected)
