"""The head of a frozen body before its first step: fitted on labels, or on propagated labels."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset
from fullmatch.experiment.feature_pass import FrozenFeatures
from fullmatch.experiment.probe_heads import (
    Array,
    HeadKind,
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
)
from fullmatch.models.frozen import HeadNetwork

CONFIDENCE = 0.8  # mean top probability that teachers are brought to before they are averaged
UNLIKELY = 1e-3  # probability below which a teacher is not blamed any further
IMAGENET = 1  # the part that holds the probabilities of all ImageNet classes
NEGLIGIBLE = 0.01  # weight below which a teacher is not asked


@dataclass(frozen=True)
class Teacher:
    """A way to label all pictures by one part of the embedding."""

    part: int
    kind: HeadKind


@dataclass(frozen=True)
class ProbeData:
    """Embeddings of the pictures that a run may learn from."""

    rows: Array  # (N, D): labeled and unlabeled pictures
    dimensions: tuple[int, ...]  # of the embedding's parts
    labeled: Labels  # rows with a label
    labels: Labels  # of those
    prior: Array  # (C,)
    strength: float = 1.0  # inverse regularization of a head on propagated labels

    @property
    def classes(self) -> int:
        return len(self.prior)

    def part(self, number: int | None) -> Array:
        """Rows of one part, or all of them scaled to length 1."""
        if number is None:
            return np.asarray(self.rows / np.sqrt(len(self.dimensions)), np.float32)
        return self.rows[:, columns(self.dimensions, number)]


def probe_data(dataset: SemiDataset, features: FrozenFeatures) -> ProbeData:
    """Each picture once, and none that a fold holds out."""
    labeled = torch.unique(dataset.labeled)
    used = torch.unique(torch.cat([labeled, dataset.unlabeled]))
    labels = dataset.labels[labeled]
    counts = torch.bincount(labels, minlength=dataset.num_classes).double()
    return ProbeData(
        rows=features.plain[used].float().numpy(),
        dimensions=features.embedding.dimensions,
        labeled=torch.searchsorted(used, labeled).numpy(),
        labels=labels.numpy(),
        prior=(counts / counts.sum()).float().numpy(),
        strength=features.model.strength,
    )


def fit_initial_head(
    network: HeadNetwork, config: ExperimentConfig, dataset: SemiDataset, features: FrozenFeatures
) -> None:
    """Write the head that `model.head` asks for into the network.

    Strategies that are compared start from the same heads, so each is fitted once.
    """
    if config.model.head == "zero":
        return
    key = head_key(config, dataset)
    if key not in features.heads:
        data = probe_data(dataset, features)
        fit = fit_labels_only if config.model.head == "logistic" else fit_propagated
        features.heads[key] = fit(data, config.seed)
    head = features.heads[key]
    with torch.no_grad():
        network.head.weight.copy_(torch.from_numpy(head.weight))
        network.head.bias.copy_(torch.from_numpy(head.bias))


def head_key(config: ExperimentConfig, dataset: SemiDataset) -> str:
    """The same for equal pictures, labels and settings of a head."""
    labels = dataset.labels[dataset.labeled]
    digest = hashlib.sha256(f"{config.model.head} {config.seed}".encode())
    for part in (dataset.labeled, labels, dataset.unlabeled):
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def fit_labels_only(data: ProbeData, seed: int) -> LinearHead:
    """Logistic regression on the labels, its regularization by cross-validation."""
    rows = data.part(None)[data.labeled]
    strength = choose_strength(rows, data.labels, data.classes, seed)
    return rescaled(fit_logistic(rows, data.labels, data.classes, strength), data)


def fit_propagated(data: ProbeData, seed: int) -> LinearHead:
    """A head that learns what the teachers say about all pictures, the better ones most."""
    targets = np.zeros((len(data.rows), data.classes), np.float32)
    for teacher, weight in weigh_teachers(data, seed).items():
        targets += weight * teach(data, teacher, data.labeled, data.labels)
    targets[data.labeled] = np.eye(data.classes, dtype=np.float32)[data.labels]
    rows = data.part(None)
    return rescaled(fit_soft(rows, targets, targets.max(axis=1), data.strength), data)


def rescaled(head: LinearHead, data: ProbeData) -> LinearHead:
    """For embeddings as they are, whose parts have length 1 each."""
    return LinearHead(head.weight / np.float32(np.sqrt(len(data.dimensions))), head.bias)


def list_teachers(data: ProbeData) -> list[Teacher]:
    """Features by propagation; probabilities also by clustering, which needs clear clusters."""
    teachers = [Teacher(0, HeadKind.PROPAGATION)]
    for part in range(1, len(data.dimensions)):
        teachers += [Teacher(part, HeadKind.PROPAGATION), Teacher(part, HeadKind.CLUSTERING)]
    return teachers


def weigh_teachers(data: ProbeData, seed: int) -> dict[Teacher, float]:
    """Each teacher's weight: how likely the labels are to it while they are held out.

    Likelihood, since a few labels hardly show which teacher is the most accurate. Where no label
    can be held out, probabilities of all ImageNet classes are left out: they help less often.
    """
    teachers = list_teachers(data)
    pairs = stratified_folds(data.labels, folds=4, repeats=2, seed=seed)
    if len(teachers) == 1 or not pairs:
        trusted = [teacher for teacher in teachers if teacher.part != IMAGENET]
        return dict.fromkeys(trusted, 1 / len(trusted))
    graphs = {each.part: NeighborGraph(data.part(each.part)) for each in teachers}
    likelihood = np.zeros(len(teachers))  # its logarithm, over all labels of all folds
    for training, held_out in pairs:
        labeled, labels = data.labeled[training], data.labels[training]
        held_out_rows, truth = data.labeled[held_out], data.labels[held_out]
        for number, teacher in enumerate(teachers):
            probabilities = teach(data, teacher, labeled, labels, graphs[teacher.part])
            likelihood[number] += np.log(
                np.maximum(probabilities[held_out_rows, truth], UNLIKELY)
            ).sum()
    likelihood *= len(data.labels) / sum(len(held_out) for _, held_out in pairs)
    weights = softmax(likelihood[None])[0]
    weights = np.where(weights < NEGLIGIBLE, 0, weights) / weights[weights >= NEGLIGIBLE].sum()
    return {
        teacher: float(weight) for teacher, weight in zip(teachers, weights, strict=True) if weight
    }


def teach(
    data: ProbeData,
    teacher: Teacher,
    labeled: Labels,
    labels: Labels,
    graph: NeighborGraph | None = None,
) -> Array:
    """(N, C) probabilities of all pictures by one teacher, equally confident for all teachers."""
    rows = data.part(teacher.part)
    if teacher.kind is HeadKind.CLUSTERING:
        unlabeled = np.setdiff1d(np.arange(len(rows)), labeled)
        head = fit_clusters(rows, labeled, labels, unlabeled, data.prior)
        probabilities = balance(head.probabilities(rows), data.prior)
    else:
        probabilities = (graph or NeighborGraph(rows)).propagate(labeled, labels, data.prior)
    return sharpened(probabilities)


def sharpened(probabilities: Array) -> Array:
    """Raised to the power at which the mean of the top probabilities is `CONFIDENCE`."""
    logs = np.log(np.maximum(probabilities, 1e-9))
    low, high = 0.01, 100.0
    for _ in range(20):
        power = float(np.sqrt(low * high))
        if softmax(power * logs).max(axis=1).mean() < CONFIDENCE:
            low = power
        else:
            high = power
    return softmax(power * logs)
