"""features.safetensors: features of a run's pictures by a pretrained network; needs no torch.

They are computed once, and serve training on a frozen body, duplicates, outliers, labels that look
wrong, the map of the report, suggestions, and the flag for novel pictures in `predict`.
"""

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fullmatch.storage.arrays import read_arrays, write_arrays
from fullmatch.storage.json_files import checked

FORMAT = 1


class Part(IntEnum):
    """What a picture is used for."""

    LABELED = 0
    UNLABELED = 1
    TEST = 2


@dataclass(frozen=True)
class PictureFeatures:
    """One row per picture: labeled and unlabeled ones in the order of the source, then the test."""

    features: NDArray[np.float32]  # (N, D), rows of length 1: cosine similarity is a dot product
    parts: NDArray[np.uint8]  # (N,), see `Part`
    labels: NDArray[np.int64]  # (N,), -1 where unknown
    names: tuple[str, ...]  # files as seen from the data's folder, or "image 12"
    classes: tuple[str, ...]
    weights: str  # which weights made them, such as "timm:tf_efficientnet_lite0 579344248a93e230"
    probabilities: NDArray[np.float32] | None = None  # (N, C) of the averaged model

    def __len__(self) -> int:
        return len(self.features)

    def where(self, part: Part) -> NDArray[np.int64]:
        """Rows of one part."""
        return np.flatnonzero(self.parts == part)


def write_features(path: Path, features: PictureFeatures) -> None:
    """Half precision is plenty for distances, and halves the file."""
    arrays: dict[str, NDArray[Any]] = {
        "features": features.features.astype(np.float16),
        "parts": features.parts.astype(np.uint8),
        "labels": features.labels.astype(np.int64),
    }
    if features.probabilities is not None:
        arrays["probabilities"] = features.probabilities.astype(np.float16)
    facts = {
        "format": FORMAT,
        "names": features.names,
        "classes": features.classes,
        "weights": features.weights,
    }
    write_arrays(path, arrays, facts)


def read_features(path: Path) -> PictureFeatures:
    """`ValueError` or `KeyError` says what is wrong with the file."""
    arrays, facts = read_arrays(path, FORMAT)
    features, parts, labels = (arrays[name] for name in ("features", "parts", "labels"))
    saved = arrays.get("probabilities")
    names, classes = (checked(facts[key], tuple[str, ...], key) for key in ("names", "classes"))
    rows = len(names)
    if (features.ndim, len(features)) != (2, rows) or {parts.shape, labels.shape} != {(rows,)}:
        raise ValueError("its arrays have different lengths")
    if not np.isfinite(features).all():
        raise ValueError("features are not finite")
    if not np.isin(parts, list(Part)).all() or not np.isin(labels, range(-1, len(classes))).all():
        raise ValueError("parts or labels are not among those it names")
    if saved is not None and (saved.shape != (rows, len(classes)) or not np.isfinite(saved).all()):
        raise ValueError("its probabilities do not fit")
    return PictureFeatures(
        features.astype(np.float32),
        parts,
        labels,
        names,
        classes,
        checked(facts["weights"], str, "weights"),
        None if saved is None else saved.astype(np.float32),
    )
