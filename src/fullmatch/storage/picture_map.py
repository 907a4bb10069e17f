"""map.safetensors: a run's pictures as points in the plane, for the report; needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fullmatch.storage.arrays import read_arrays, write_arrays
from fullmatch.storage.features import Part
from fullmatch.storage.json_files import checked

if TYPE_CHECKING:
    from PIL import Image

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

    def choose_rows(self, most: int) -> NDArray[np.int64]:
        """Sorted rows: pictures that people look for first, then evenly spaced others."""
        first = (self.parts == Part.LABELED) | self.wrong | self.outlier | self.suspect
        chosen = evenly_spaced_rows(np.flatnonzero(first), most)
        others = evenly_spaced_rows(np.flatnonzero(~first), most - len(chosen))
        return np.union1d(chosen, others)

    def take(self, rows: NDArray[np.int64]) -> "PictureMap":
        """The map of some of the pictures."""
        names = tuple(self.names[row] for row in rows)
        arrays = {name: getattr(self, name)[rows] for name in ARRAYS}
        return PictureMap(**arrays, names=names, classes=self.classes)


@dataclass(frozen=True)
class Thumbnails:
    """Small pictures for the map, in sheets of equal tiles that are filled row by row."""

    sheets: tuple[bytes, ...] = ()  # JPEG files
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    # The picture in each tile, as a row of the map.
    tile: tuple[int, int] = (1, 1)  # width and height in pixels
    cell: tuple[int, int] = (1, 1)  # the same with padding, which keeps tiles apart
    columns: int = 1
    per_sheet: int = 1  # tiles; the last sheet may have fewer
    missing: str = ""  # why there are none, as a sentence
    # Reads one picture, given its row, at its own size; None if that is not possible.
    open_picture: "Callable[[int], Image.Image] | None" = None


def evenly_spaced_rows(rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Up to `limit` of the rows, evenly spaced because data is often sorted by class."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), limit)).round().astype(np.int64)
    return rows[places]


def write_map(path: Path, picture_map: PictureMap) -> None:
    arrays: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(getattr(picture_map, name), kind)
        for name, kind in ARRAYS.items()
    }
    facts = {"format": FORMAT, "names": picture_map.names, "classes": picture_map.classes}
    write_arrays(path, arrays, facts)


def read_map(path: Path) -> PictureMap:
    """`ValueError` or `KeyError` says what is wrong with the file."""
    stored, facts = read_arrays(path, FORMAT)
    arrays: dict[str, NDArray[Any]] = {
        name: stored[name].astype(kind) for name, kind in ARRAYS.items()
    }
    names, classes = (checked(facts[key], tuple[str, ...], key) for key in ("names", "classes"))
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
