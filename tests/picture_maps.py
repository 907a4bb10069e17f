"""Synthetic features and maps: clusters of pictures, some of them odd."""

import numpy as np

from fullmatch.storage.features import Part, PictureFeatures
from fullmatch.storage.picture_map import PictureMap

CLASSES = ("cat", "dog", "fox")


def make_features(
    count: int = 60, *, classes: tuple[str, ...] = CLASSES, dimensions: int = 16, seed: int = 0
) -> PictureFeatures:
    """Well separated clusters of one class each; every tenth picture is labeled."""
    rng = np.random.default_rng(seed)
    targets = np.arange(count) % len(classes)
    centers = rng.normal(size=(len(classes), dimensions))
    points = 3 * centers[targets] + rng.normal(size=(count, dimensions))
    parts = np.full(count, Part.UNLABELED, np.uint8)
    parts[::10] = Part.LABELED
    parts[count - count // 6 :] = Part.TEST
    return PictureFeatures(
        features=(points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32),
        parts=parts,
        labels=np.where(parts == Part.UNLABELED, -1, targets),
        names=tuple(f"pictures/{number:05d}.png" for number in range(count)),
        classes=classes,
        weights="timm:test 0123456789abcdef",
    )


def make_probabilities(features: PictureFeatures, seed: int = 0) -> np.ndarray:
    """Mostly right, sometimes unsure, sometimes wrong."""
    rng = np.random.default_rng(seed)
    count, classes = len(features), len(features.classes)
    logits = rng.normal(size=(count, classes))
    logits[np.arange(count), np.arange(count) % classes] += 3
    exponents = np.exp(logits)
    return exponents / exponents.sum(axis=1, keepdims=True)


def make_map(count: int = 60, *, classes: tuple[str, ...] = CLASSES, seed: int = 0) -> PictureMap:
    """Clusters in the plane; every 15th picture is an outlier, every 20th has a wrong label."""
    rng = np.random.default_rng(seed)
    features = make_features(count, classes=classes, dimensions=2, seed=seed)
    probabilities = make_probabilities(features, seed)
    angle = 2 * np.pi * (np.arange(count) % len(classes)) / len(classes)
    points = 0.6 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points += rng.normal(scale=0.1, size=(count, 2))
    suspect = (np.arange(count) % 20 == 0) & (features.labels >= 0)
    return PictureMap(
        points=points.clip(-1, 1).astype(np.float32),
        predicted=probabilities.argmax(axis=1),
        confidence=probabilities.max(axis=1).astype(np.float32),
        outlier=np.arange(count) % 15 == 7,
        suspect=suspect,
        parts=features.parts,
        labels=np.where(suspect, (features.labels + 1) % len(classes), features.labels),
        names=features.names,
        classes=classes,
    )
