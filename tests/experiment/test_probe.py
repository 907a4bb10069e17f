"""The first head of a frozen body: fitted on labels, or on what teachers say about all pictures."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.data import SemiDataset, TensorStore
from fullmatch.experiment import probe
from fullmatch.experiment.feature_pass import FrozenFeatures
from fullmatch.experiment.probe import (
    CONFIDENCE,
    ProbeData,
    Teacher,
    fit_initial_head,
    fit_labels_only,
    fit_propagated,
    list_teachers,
    probe_data,
    sharpened,
    teach,
    weigh_teachers,
)
from fullmatch.experiment.probe_heads import Array, HeadKind, Labels, fit_soft, softmax, unit_rows
from fullmatch.models.frozen import Embedding, HeadNetwork
from tests.experiment.test_probe_heads import clusters, first_of_each_class
from tests.frozen_runs import frozen_config, tiny_model

WIDTH = 12


def noise(count: int, width: int = WIDTH) -> Array:
    return unit_rows(np.random.default_rng(7).normal(size=(count, width)))


def two_parts(
    counts: tuple[int, ...] = (20, 20, 20), labels: int = 4, *, useful: tuple[bool, ...]
) -> tuple[ProbeData, Labels]:
    """Parts that know the classes, or are noise; and the true classes of all rows."""
    rows, truth = clusters(counts)
    parts = [rows if knows else noise(len(rows)) for knows in useful]
    labeled = first_of_each_class(truth, labels)
    data = ProbeData(
        rows=np.concatenate(parts, axis=1),
        dimensions=(WIDTH,) * len(parts),
        labeled=labeled,
        labels=truth[labeled],
        prior=(np.asarray(counts) / sum(counts)).astype(np.float32),
    )
    return data, truth


def test_parts_of_the_rows() -> None:
    data, _ = two_parts(useful=(True, False))
    assert np.array_equal(data.part(1), data.rows[:, WIDTH:])
    assert np.allclose(np.linalg.norm(data.part(None), axis=1), 1, atol=1e-5)
    assert data.classes == 3


def test_one_part_has_one_teacher() -> None:
    data, _ = two_parts(useful=(True,))
    assert list_teachers(data) == [Teacher(0, HeadKind.PROPAGATION)]
    assert weigh_teachers(data, 0) == {Teacher(0, HeadKind.PROPAGATION): 1}


@pytest.mark.parametrize("best", [0, 1])
def test_teachers_that_look_at_noise_are_not_used(best: int) -> None:
    data, _ = two_parts(useful=(best == 0, best == 1))
    weights = weigh_teachers(data, seed=0)
    assert {teacher.part for teacher in weights} == {best}
    assert sum(weights.values()) == pytest.approx(1)
    assert weigh_teachers(data, seed=0) == weights


def test_equally_good_teachers_are_all_used() -> None:
    data, _ = two_parts(useful=(True, True))
    weights = weigh_teachers(data, seed=0)
    assert list(weights) == list_teachers(data)
    assert sum(weights.values()) == pytest.approx(1)


@pytest.mark.parametrize("parts", [2, 3])
def test_imagenet_is_asked_only_where_labels_can_confirm_it(parts: int) -> None:
    data, _ = two_parts(labels=1, useful=(True,) * parts)
    weights = weigh_teachers(data, seed=0)
    assert {teacher.part for teacher in weights} == {0, 1, 2}.intersection(range(parts)) - {1}
    assert sum(weights.values()) == pytest.approx(1)


@pytest.mark.parametrize("teacher", list_teachers(two_parts(useful=(True, True))[0]))
def test_every_teacher_knows_clear_clusters(teacher: Teacher) -> None:
    data, truth = two_parts((30, 20, 10), useful=(True, True))
    probabilities = teach(data, teacher, data.labeled, data.labels)
    assert np.mean(probabilities.argmax(axis=1) == truth) > 0.95
    assert probabilities.max(axis=1).mean() == pytest.approx(CONFIDENCE, abs=0.01)


def test_sharpening_keeps_the_order_of_classes() -> None:
    vague = softmax(0.1 * np.random.default_rng(0).normal(size=(40, 4)))
    certain = softmax(20 * np.random.default_rng(0).normal(size=(40, 4)))
    for probabilities in (vague, certain):
        sharp = sharpened(probabilities)
        assert sharp.max(axis=1).mean() == pytest.approx(CONFIDENCE, abs=0.01)
        assert np.array_equal(sharp.argmax(axis=1), probabilities.argmax(axis=1))


@pytest.mark.parametrize("fit", [fit_labels_only, fit_propagated])
@pytest.mark.parametrize("labels", [1, 2, 4])
@pytest.mark.parametrize("useful", [(True,), (True, True)])
def test_heads_know_clear_clusters(fit: object, labels: int, useful: tuple[bool, ...]) -> None:
    assert callable(fit)
    data, truth = two_parts(labels=labels, useful=useful)
    head = fit(data, 0)
    assert head.weight.shape == (3, WIDTH * len(useful))
    assert np.mean(head.logits(data.rows).argmax(axis=1) == truth) > 0.95
    again = fit(data, 0)
    assert np.array_equal(head.weight, again.weight)
    assert np.array_equal(head.bias, again.bias)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_unlabeled_pictures_help(seed: int) -> None:
    """With one label per class and wide clusters, propagated labels beat the labels only."""
    rows, truth = clusters((60, 60, 60), spread=0.3, seed=seed)
    labeled = first_of_each_class(truth)
    data = ProbeData(rows, (WIDTH,), labeled, truth[labeled], np.full(3, 1 / 3, np.float32))
    labels_only, propagated = (
        np.mean(fit(data, 0).logits(rows).argmax(axis=1) == truth)
        for fit in (fit_labels_only, fit_propagated)
    )
    assert propagated > labels_only + 0.03


def test_an_uneven_class_prior() -> None:
    data, truth = two_parts((60, 12, 8), labels=2, useful=(True, True))
    head = fit_propagated(data, 0)
    assert np.mean(head.logits(data.rows).argmax(axis=1) == truth) > 0.95


def test_a_class_without_a_label() -> None:
    data, truth = two_parts(useful=(True, True))
    present = data.labels != 1
    data = ProbeData(
        data.rows,
        data.dimensions,
        data.labeled[present],
        data.labels[present],
        np.array([0.5, 0.0, 0.5], np.float32),
    )
    for fit in (fit_labels_only, fit_propagated):
        head = fit(data, 0)
        predictions = head.logits(data.rows).argmax(axis=1)
        assert np.isfinite(head.weight).all()
        assert np.isfinite(head.bias).all()
        assert not (predictions == 1).any()
        assert np.array_equal(predictions[truth != 1], truth[truth != 1])


def test_labels_are_believed_over_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = two_parts(useful=(True,))
    targets: list[Array] = []

    def record(rows: Array, soft: Array, weights: Array, strength: float) -> object:
        targets.append(soft.copy())
        return fit_soft(rows, soft, weights, strength)

    monkeypatch.setattr(probe, "fit_soft", record)
    fit_propagated(data, 0)
    assert np.array_equal(targets[0][data.labeled], np.eye(3)[data.labels])


def dataset_and_features() -> tuple[SemiDataset, FrozenFeatures, Labels]:
    """Rows of which some are labeled twice, some are unused, and the rest unlabeled."""
    rows, truth = clusters((10, 10, 10))
    labeled = torch.from_numpy(first_of_each_class(truth, 3))
    unlabeled = torch.arange(25)
    dataset = SemiDataset(
        name="clusters",
        images=TensorStore(torch.zeros(30, 3, 8, 8, dtype=torch.uint8)),
        labels=torch.from_numpy(truth),
        labeled=torch.cat([labeled, labeled[:2]]),
        unlabeled=unlabeled,
        test=None,
        test_labels=None,
        classes=("a", "b", "c"),
        appearance=Appearance(mean=(0.5,) * 3, std=(0.25,) * 3, padding=1),
    )
    features = FrozenFeatures(
        model=tiny_model(),
        embedding=Embedding((WIDTH,), (WIDTH,)),
        training=torch.from_numpy(rows)[:, None],
        test=None,
        weak=(0,),
        strong=(0,),
    )
    return dataset, features, truth


def test_each_picture_counts_once_and_only_if_it_may_be_used() -> None:
    dataset, features, truth = dataset_and_features()
    data = probe_data(dataset, features)
    used = torch.unique(torch.cat([dataset.labeled, dataset.unlabeled]))
    assert len(data.rows) == len(used) < 30
    assert np.array_equal(data.rows, features.plain[used].numpy())
    assert len(data.labeled) == 9
    assert np.array_equal(truth[used.numpy()[data.labeled]], data.labels)
    assert np.allclose(data.prior, 1 / 3)


@pytest.mark.parametrize("head", ["zero", "logistic", "propagation"])
def test_the_head_that_the_config_names(head: str) -> None:
    dataset, features, truth = dataset_and_features()
    config: ExperimentConfig = frozen_config(Path("digits"), "fullmatch", f"model.head={head}")
    network = HeadNetwork(WIDTH, 3)
    fit_initial_head(network, config, dataset, features)
    if head == "zero":
        assert not network.head.weight.any()
        assert not network.head.bias.any()
        return
    with torch.no_grad():
        logits = network(features.plain[:, :, None, None]).logits
    assert torch.equal(logits.argmax(dim=1), torch.from_numpy(truth))
