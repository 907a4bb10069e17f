"""Which pictures to label next, with a model: those it is unsure of, and that differ.

The pictures with the smallest margin between their two most likely classes are clustered by the
model's features, and the least certain of each cluster is suggested. Features and probabilities
that are stored with the run are not computed again.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from fullmatch.data.stores import pictures
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.run_features import name_in_folder
from fullmatch.inference.novelty import predict_with_features
from fullmatch.inference.thumbnails import open_picture
from fullmatch.inference.trained_run import TrainedRun

SAMPLE = 2000  # pictures looked at, which bounds the time
SHORTLIST = 10  # uncertain pictures per suggestion, from which varied ones are chosen
BATCH = 64

Opener = Callable[[str], Image.Image]
Array = NDArray[Any]


class Suggestion(NamedTuple):
    """A picture to label, and the model's guess; without a model, none."""

    name: str
    guess: str
    confidence: float | None
    reason: str


@dataclass(frozen=True)
class Suggestions:
    """Pictures to label, best first, and how many were looked at."""

    pictures: list[Suggestion]
    sampled: int
    unreadable: int  # of those sampled
    basis: str  # what they were compared by


@dataclass(frozen=True)
class Judgment:
    """What a model says about pictures that can be read."""

    names: list[str]
    probabilities: Tensor  # (N, C), calibrated
    features: Tensor  # (N, D)


class Cluster(NamedTuple):
    """A cluster of similar pictures, and the position of the one that represents it."""

    at: int
    size: int


def suggest_uncertain(
    run: TrainedRun,
    names: Sequence[str],
    count: int,
    *,
    open_image: Opener = open_picture,
    sample_size: int = SAMPLE,
) -> Suggestions:
    """Pictures that the run's model is least certain about, and that differ from each other."""
    stored = read_stored(run, names)
    known = set() if stored is None else set(stored.names)
    sample = draw_sample([n for n in names if n not in known], run.config.seed, sample_size)
    judged = judge(run, sample, open_image)
    looked_at, unreadable = len(known) + len(sample), len(sample) - len(judged.names)
    basis = "the model's features"
    if stored is not None:
        check_width(run, stored, judged)
        basis, judged = "features stored with the run", join_judgments(stored, judged)
    if not judged.names:
        return Suggestions([], looked_at, unreadable, basis)
    top = judged.probabilities.topk(2, dim=1)
    margin = (top.values[:, 0] - top.values[:, 1]).double().numpy()
    nearest = np.argsort(margin, kind="stable")[: SHORTLIST * count]
    points = judged.features.numpy()[nearest]
    clusters = cluster(points, count, run.config.seed, -margin[nearest])
    chosen = sorted((int(nearest[each.at]) for each in clusters), key=lambda at: margin[at])
    classes = run.classifier.classes
    suggestions = [
        describe_uncertain(judged.names[at], classes, top.indices[at], top.values[at])
        for at in chosen
    ]
    return Suggestions(suggestions, looked_at, unreadable, basis)


def judge(run: TrainedRun, names: Sequence[str], open_image: Opener) -> Judgment:
    """By a pass through the model; unreadable pictures are left out."""
    classifier = run.classifier.to(choose_device())
    channels, height, width = classifier.image
    readable: list[str] = []
    probs, features = [torch.empty(0, len(classifier.classes))], list[Tensor]()
    for part, images in read_batches(names, (height, width), channels, open_image):
        outputs = predict_with_features(classifier, torch.from_numpy(images))
        readable += part
        probs.append(apply_temperature(outputs[0], run.temperature or 1.0).cpu())
        features.append(outputs[1].cpu())
    return Judgment(readable, torch.cat(probs), torch.cat(features or [torch.empty(0, 0)]))


def read_stored(run: TrainedRun, names: Sequence[str]) -> Judgment | None:
    """Of the pictures that the run was trained on; None if it has stored no features."""
    stored = run.folder.read_features()
    if stored is None or stored.probabilities is None:
        return None
    rows = {name: row for row, name in enumerate(stored.names)}
    folder = run.result.data
    places = {name: rows.get(name_in_run(name, folder)) for name in names}
    known = {name: row for name, row in places.items() if row is not None}
    at = list(known.values())
    probs = torch.from_numpy(stored.probabilities[at])
    return Judgment(
        list(known),
        apply_temperature(probs, run.temperature or 1.0),
        torch.from_numpy(stored.features[at]),
    )


def check_width(run: TrainedRun, stored: Judgment, computed: Judgment) -> None:
    if computed.names and stored.features.shape[1] != computed.features.shape[1]:
        raise UserError(
            f"{run.folder.features} is damaged (features of {stored.features.shape[1]} numbers, "
            f"the model computes {computed.features.shape[1]}); delete it: it is not needed"
        )


def name_in_run(name: str, folder: str) -> str:
    """The name that a run's features have for a file, or for the position of an image."""
    return f"image {name}" if name.isdecimal() else name_in_folder(name, folder)


def join_judgments(stored: Judgment, computed: Judgment) -> Judgment:
    """Both, with features of length 1, as they are stored."""
    if not computed.names:
        return stored
    return Judgment(
        stored.names + computed.names,
        torch.cat([stored.probabilities, computed.probabilities]),
        torch.cat([stored.features, functional.normalize(computed.features, dim=1)]),
    )


def describe_uncertain(
    name: str, classes: Sequence[str], codes: Tensor, probs: Tensor
) -> Suggestion:
    first, second = (classes[code] for code in codes.tolist())
    likely, less = probs.tolist()
    reason = f"between {first} and {second}: {100 * likely:.0f} % and {100 * less:.0f} %"
    return Suggestion(name, first, likely, reason)


def draw_sample(names: Sequence[str], seed: int, most: int = SAMPLE) -> list[str]:
    return random.Random(seed).sample(names, min(len(names), most))


def read_batches(
    names: Sequence[str], size: tuple[int, int], channels: int, open_image: Opener
) -> Iterator[tuple[list[str], Array]]:
    """Names and pixels (B, channels, H, W) of the pictures that can be read."""

    def decode(name: str) -> Array:
        with open_image(name) as image:
            image.draft(None, (max(size), max(size)))
            return pictures.resize_and_crop(image, size, channels)

    for start in range(0, len(names), BATCH):
        part = names[start : start + BATCH]
        decoded = pictures.map_in_threads(lambda name: pictures.try_read(decode, name), part)
        pairs = [(n, pixels) for n, pixels in zip(part, decoded, strict=True) if pixels is not None]
        if pairs:
            yield [name for name, _ in pairs], np.stack([pixels for _, pixels in pairs])


def cluster(points: Array, count: int, seed: int, score: Array | None = None) -> list[Cluster]:
    """Up to `count` clusters; each is represented by its best score, or its most central point."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(points, axis=0))  # duplicates never form two clusters
    fit = KMeans(min(count, distinct), n_init=1, random_state=seed).fit(points)
    if score is None:
        score = -np.linalg.norm(points - fit.cluster_centers_[fit.labels_], axis=1)
    clusters = []
    for label in np.unique(fit.labels_):
        members = np.flatnonzero(fit.labels_ == label)
        clusters.append(Cluster(int(members[np.argmax(score[members])]), len(members)))
    return clusters
