"""Which pictures to label next: unsure ones and unlike each other, or just typical ones at first.

With a model, the pictures whose two likeliest classes are nearly as likely are put into groups of
similar ones by the model's own features, and the least sure of each group is suggested. Without a
model, all pictures are grouped by their colours, and the most typical of each group is suggested.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fullmatch.data.stores import pictures
from fullmatch.evaluation.calibration import calibrated
from fullmatch.inference.novelty import seen
from fullmatch.inference.thumbnails import open_file
from fullmatch.inference.trained_run import TrainedRun

LOOKED_AT = 2000  # pictures at most, so that a million of them are no burden
SHORTLIST = 10  # unsure pictures for each that is suggested
SMALL = (8, 8)  # size at which pictures are compared when there is no model
BATCH = 64

Opener = Callable[[str], Image.Image]
Array = NDArray[Any]


class Suggestion(NamedTuple):
    """A picture to label, with what the model takes it for; without a model, nothing."""

    name: str
    guess: str
    confidence: float | None
    reason: str


class Group(NamedTuple):
    """The picture that stands for a group of similar ones, and how many they are."""

    at: int
    size: int


def unsure(
    run: TrainedRun,
    names: Sequence[str],
    count: int,
    *,
    opened: Opener = open_file,
    unread: list[str] | None = None,
) -> list[Suggestion]:
    """The pictures that a run's model has most to learn from; the least sure one first.

    `unread` takes up those of the pictures looked at that cannot be read.
    """
    classifier = run.classifier.to("cuda" if torch.cuda.is_available() else "cpu")
    channels, height, width = classifier.image
    found, shares, features = [], [], []
    for part, images in read(names, (height, width), channels, run.config.seed, opened, unread):
        probs, points = seen(classifier, torch.from_numpy(images))
        found += part
        shares.append(calibrated(probs, run.temperature or 1.0).cpu())
        features.append(points.cpu())
    if not found:
        return []
    top = torch.cat(shares).topk(2, dim=1)
    margin = (top.values[:, 0] - top.values[:, 1]).double().numpy()
    near = np.argsort(margin, kind="stable")[: SHORTLIST * count]
    groups = grouped(torch.cat(features).numpy()[near], count, run.config.seed, -margin[near])
    chosen = sorted((int(near[group.at]) for group in groups), key=lambda at: margin[at])
    result = []
    for at in chosen:
        first, second = (classifier.classes[code] for code in top.indices[at].tolist())
        sure, next_to = top.values[at].tolist()
        reason = f"between {first} and {second}: {100 * sure:.0f} % and {100 * next_to:.0f} %"
        result.append(Suggestion(found[at], first, sure, reason))
    return result


def typical(
    names: Sequence[str], count: int, *, seed: int = 0, opened: Opener = open_file
) -> list[Suggestion]:
    """Pictures of many kinds, for a start without a model; of the largest group first."""
    parts = list(read(names, SMALL, 3, seed, opened))
    if not parts:
        return []
    found = [name for part, _ in parts for name in part]
    points = np.concatenate([images.reshape(len(images), -1) for _, images in parts]) / 255
    groups = grouped(points, count, seed)
    return [
        Suggestion(
            found[at],
            "",
            None,
            f"one of {size} similar pictures" if size > 1 else "unlike the rest",
        )
        for at, size in sorted(groups, key=lambda group: (-group.size, group.at))
    ]


def read(
    names: Sequence[str],
    size: tuple[int, int],
    channels: int,
    seed: int,
    opened: Opener,
    unread: list[str] | None = None,
) -> Iterator[tuple[list[str], Array]]:
    """Pixels (B, channels, H, W) of some pictures, drawn by the seed; unreadable ones left out."""

    def decoded(name: str) -> Array:
        with opened(name) as image:
            image.draft(None, (max(size), max(size)))
            return pictures.resize_and_crop(image, size, channels)

    drawn = random.Random(seed).sample(names, min(len(names), LOOKED_AT))
    for start in range(0, len(drawn), BATCH):
        part = drawn[start : start + BATCH]
        found = list(pictures.map_in_threads(lambda name: pictures.try_read(decoded, name), part))
        readable = [pixels for pixels in found if pixels is not None]
        if unread is not None:
            unread += compress(part, (pixels is None for pixels in found))
        if readable:
            yield list(compress(part, (pixels is not None for pixels in found))), np.stack(readable)


def grouped(points: Array, count: int, seed: int, score: Array | None = None) -> list[Group]:
    """Up to `count` groups of near points; the best score stands for each, or the most central."""
    from sklearn.cluster import KMeans

    different = len(np.unique(points, axis=0))  # copies are one point, and never two groups
    found = KMeans(min(count, different), n_init=1, random_state=seed).fit(points)
    if score is None:
        score = -np.linalg.norm(points - found.cluster_centers_[found.labels_], axis=1)
    groups = []
    for label in np.unique(found.labels_):
        members = np.flatnonzero(found.labels_ == label)
        groups.append(Group(int(members[np.argmax(score[members])]), len(members)))
    return groups
