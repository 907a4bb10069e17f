"""Which pictures to label next: uncertain and varied ones, or typical ones if there is no model.

With a model, the pictures with the smallest margin between their two most likely classes are
clustered by the model's features, and the least certain of each cluster is suggested. Without a
model, all pictures are clustered by color, and the most central of each cluster is suggested.
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

from fullmatch.data.stores import pictures
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.machine import choose_device
from fullmatch.inference.novelty import predict_with_features
from fullmatch.inference.thumbnails import open_picture
from fullmatch.inference.trained_run import TrainedRun

SAMPLE = 2000  # pictures looked at, which bounds the time
SHORTLIST = 10  # uncertain pictures per suggestion, from which varied ones are chosen
SMALL = (8, 8)  # size at which pictures are compared without a model
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


class Cluster(NamedTuple):
    """A cluster of similar pictures, and the position of the one that represents it."""

    at: int
    size: int


def suggest_uncertain(
    run: TrainedRun, names: Sequence[str], count: int, *, open_image: Opener = open_picture
) -> Suggestions:
    """Pictures that the run's model is least certain about, and that differ from each other."""
    classifier = run.classifier.to(choose_device())
    channels, height, width = classifier.image
    sample = draw_sample(names, run.config.seed)
    readable: list[str] = []
    probs, features = [], []
    for part, images in read_batches(sample, (height, width), channels, open_image):
        outputs = predict_with_features(classifier, torch.from_numpy(images))
        readable += part
        probs.append(apply_temperature(outputs[0], run.temperature or 1.0).cpu())
        features.append(outputs[1].cpu())
    if not readable:
        return Suggestions([], len(sample), len(sample))
    top = torch.cat(probs).topk(2, dim=1)
    margin = (top.values[:, 0] - top.values[:, 1]).double().numpy()
    nearest = np.argsort(margin, kind="stable")[: SHORTLIST * count]
    points = torch.cat(features).numpy()[nearest]
    clusters = cluster(points, count, run.config.seed, -margin[nearest])
    chosen = sorted((int(nearest[each.at]) for each in clusters), key=lambda at: margin[at])
    suggestions = [
        describe_uncertain(readable[at], classifier.classes, top.indices[at], top.values[at])
        for at in chosen
    ]
    return Suggestions(suggestions, len(sample), len(sample) - len(readable))


def describe_uncertain(
    name: str, classes: Sequence[str], codes: Tensor, probs: Tensor
) -> Suggestion:
    first, second = (classes[code] for code in codes.tolist())
    likely, less = probs.tolist()
    reason = f"between {first} and {second}: {100 * likely:.0f} % and {100 * less:.0f} %"
    return Suggestion(name, first, likely, reason)


def suggest_typical(
    names: Sequence[str], count: int, *, seed: int = 0, open_image: Opener = open_picture
) -> Suggestions:
    """Typical pictures of every kind, without a model; from the largest cluster first."""
    sample = draw_sample(names, seed)
    batches = list(read_batches(sample, SMALL, 3, open_image))
    if not batches:
        return Suggestions([], len(sample), len(sample))
    readable = [name for part, _ in batches for name in part]
    points = np.concatenate([images.reshape(len(images), -1) for _, images in batches]) / 255
    clusters = sorted(cluster(points, count, seed), key=lambda each: (-each.size, each.at))
    suggestions = [describe_typical(readable[at], size) for at, size in clusters]
    return Suggestions(suggestions, len(sample), len(sample) - len(readable))


def describe_typical(name: str, cluster_size: int) -> Suggestion:
    alike = f"one of {cluster_size} similar pictures"
    return Suggestion(name, "", None, alike if cluster_size > 1 else "unlike the others")


def draw_sample(names: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(names, min(len(names), SAMPLE))


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
