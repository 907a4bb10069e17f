"""map.safetensors: a run's pictures as points in the plane, for the report; needs no torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from fullmatch.storage.atomic import replacing
from fullmatch.storage.features import Part

FORMAT = 1
ARRAYS = {  # name -> type, as stored
    "points": np.float32,
    "predicted": np.int64,
    "confidence": np.float32,
    "outlier": np.bool_,
    "suspect": np.bool_,
    "parts": np.uint8,
    "labels": np.int64,
}


@dataclass(frozen=True)
class PictureMap:
    """One row per picture, in the order of `PictureFeatures`."""

    points: NDArray[np.float32]  # (N, 2), similar pictures close together; between -1 and 1
    predicted: NDArray[np.int64]  # (N,)
    confidence: NDArray[np.float32]  # (N,) of the prediction, from 0 to 1
    outlier: NDArray[np.bool_]  # (N,) unlike the labeled pictures
    suspect: NDArray[np.bool_]  # (N,) its label looks wrong
    parts: NDArray[np.uint8]  # (N,), see `Part`
    labels: NDArray[np.int64]  # (N,), -1 where unknown
    names: tuple[str, ...]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Where the prediction is not the label; False where the label is unknown."""
        wrong: NDArray[np.bool_] = (self.predicted != self.labels) & (self.labels >= 0)
        return wrong


@dataclass(frozen=True)
class Thumbnails:
    """Small pictures for the map, in sheets of equal tiles that are filled row by row."""

    sheets: tuple[bytes, ...] = ()  # JPEG files
    rows: NDArray[np.int64] | None = None  # (T,) the picture in each tile, as a row of the map
    tile: tuple[int, int] = (1, 1)  # width and height in pixels
    columns: int = 1
    per_sheet: int = 1  # tiles; the last sheet may have fewer
    missing: str = ""  # why there are none, as a sentence


def write_map(path: Path, picture_map: PictureMap) -> None:
    arrays: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(getattr(picture_map, name), kind)
        for name, kind in ARRAYS.items()
    }
    facts = {"format": FORMAT, "names": picture_map.names, "classes": picture_map.classes}
    with replacing(path) as place:
        place.touch()
        mode = place.stat().st_mode
        save_file(arrays, place, metadata={"fullmatch": json.dumps(facts)})
        place.chmod(mode)  # safetensors makes files that only their owner may read


def read_map(path: Path) -> PictureMap:
    """`ValueError` or `KeyError` says what is wrong with the file."""
    with safe_open(path, framework="numpy") as file:
        facts = json.loads((file.metadata() or {}).get("fullmatch", "{}"))
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise ValueError("another version of fullmatch wrote it")
        stored = set(file.keys())
        if missing := [name for name in ARRAYS if name not in stored]:
            raise KeyError(missing[0])
        arrays = {name: file.get_tensor(name).astype(kind) for name, kind in ARRAYS.items()}
    names, classes = tuple(map(str, facts["names"])), tuple(map(str, facts["classes"]))
    picture_map = PictureMap(**arrays, names=names, classes=classes)
    check_map(picture_map)
    return picture_map


def check_map(picture_map: PictureMap) -> None:
    """`ValueError` where the parts of a map do not fit each other."""
    rows, classes = len(picture_map.names), len(picture_map.classes)
    for name in ARRAYS:
        expected = (rows, 2) if name == "points" else (rows,)
        if getattr(picture_map, name).shape != expected:
            raise ValueError(f"{name} and names have different lengths")
    predicted, labels, parts = picture_map.predicted, picture_map.labels, picture_map.parts
    if not np.isfinite(picture_map.points).all():
        raise ValueError("points are not finite")
    if not ((picture_map.confidence >= 0) & (picture_map.confidence <= 1)).all():
        raise ValueError("confidences are not between 0 and 1")
    if not ((predicted >= 0) & (predicted < classes)).all():
        raise ValueError("predictions are not classes")
    if not ((labels >= -1) & (labels < classes)).all():
        raise ValueError("labels are not classes")
    if not np.isin(parts, list(Part)).all():
        raise ValueError("parts are not known")
