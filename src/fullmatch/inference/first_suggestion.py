"""Which pictures to label first, without a model: typical ones of every kind.

Pictures are clustered by features of a pretrained network, or by color if they are not photos, and
the most central picture of each cluster is suggested. Clusters with labeled pictures come last, the
others from the largest on.
"""

from collections.abc import Sequence

import numpy as np
import torch

from fullmatch.data.sources.picture_files import choose_form
from fullmatch.experiment.feature_pass import Progress
from fullmatch.experiment.photo_pass import PhotoDescriber, find_photo_weights
from fullmatch.experiment.planning import PHOTO_SIDE
from fullmatch.inference.suggestion import (
    SAMPLE,
    Array,
    Cluster,
    Suggestion,
    Suggestions,
    draw_sample,
    read_batches,
)
from fullmatch.inference.thumbnails import open_picture
from fullmatch.models.pretrained import WeightsFile

SMALL = (8, 8)  # size at which pictures are compared by color
MOST_LABELED = 300  # labeled pictures that are looked at, besides the others


def suggest_typical(
    names: Sequence[str],
    count: int,
    *,
    labeled: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Suggestions:
    """Typical pictures of every kind, first of the kinds that have no label."""
    sample = draw_sample(names, seed, SAMPLE)
    known = draw_sample(labeled, seed, MOST_LABELED)
    side, channels = choose_form(sample)
    weights = find_photo_weights(channels, side)
    if weights is None:
        readable, points = read_colors([*known, *sample], progress)
        basis = describe_colors(side, channels)
    else:
        readable, points = embed_photos([*known, *sample], weights, side, progress)
        basis = f"features of {weights.model}"
    with_label = set(known)
    has_label = np.array([name in with_label for name in readable], bool)
    unreadable = len(sample) - int((~has_label).sum())
    if has_label.all():
        return Suggestions([], len(sample), unreadable, basis)
    clusters = cluster_with_labels(points, has_label, count, seed)
    suggestions = [describe_typical(readable[each.at], each.size) for each in clusters]
    return Suggestions(suggestions, len(sample), unreadable, basis)


def describe_colors(side: int, channels: int) -> str:
    """Why features were not used."""
    if channels == 1 or side < PHOTO_SIDE:
        return f"color: features need color pictures of at least {PHOTO_SIDE} pixels"
    return "color: there are no pretrained weights on this machine"


def read_colors(names: Sequence[str], progress: Progress) -> tuple[list[str], Array]:
    """Names of readable pictures, and their pixels at a tiny size."""
    readable: list[str] = []
    points: list[Array] = [np.empty((0, 3 * SMALL[0] * SMALL[1]))]
    for part, images in read_batches(names, SMALL, 3, open_picture):
        readable += part
        points.append(images.reshape(len(images), -1) / 255)
        progress(len(readable), len(names))
    return readable, np.concatenate(points)


def embed_photos(
    names: Sequence[str], weights: WeightsFile, side: int, progress: Progress
) -> tuple[list[str], Array]:
    """Names of readable pictures, and their features."""
    describer = PhotoDescriber(weights, side)
    readable, rows = list[str](), [np.empty((0, describer.width), np.float16)]
    for part, images in read_batches(names, (side, side), 3, open_picture):
        for batch in torch.split(torch.from_numpy(images), describer.batch):
            rows.append(describer.describe(batch))
            progress(sum(map(len, rows)), len(names))
        readable += part
    descriptors = np.concatenate(rows)
    points = describer.embed(descriptors).embeddings if len(descriptors) else descriptors
    return readable, points


def cluster_with_labels(points: Array, labeled: Array, count: int, seed: int) -> list[Cluster]:
    """Up to `count` clusters, each with its most central unlabeled picture.

    There is a cluster for every labeled picture besides, so that most of them have one without.
    """
    from sklearn.cluster import KMeans

    distinct = len(np.unique(points, axis=0))  # duplicates never form two clusters
    wanted = min(count + int(labeled.sum()), distinct)
    fit = KMeans(wanted, n_init=1, random_state=seed).fit(points)
    centrality = -np.linalg.norm(points - fit.cluster_centers_[fit.labels_], axis=1)
    order: list[tuple[bool, int, Cluster]] = []
    for label in range(wanted):
        members = np.flatnonzero(fit.labels_ == label)
        others = members[~labeled[members]]
        if len(others):
            at = int(others[np.argmax(centrality[others])])
            order.append((len(others) < len(members), -len(members), Cluster(at, len(members))))
    return [each for *_, each in sorted(order)][:count]


def describe_typical(name: str, cluster_size: int) -> Suggestion:
    alike = f"one of {cluster_size} similar pictures"
    return Suggestion(name, "", None, alike if cluster_size > 1 else "unlike the others")
