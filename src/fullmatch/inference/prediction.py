"""Labels for pictures, one row per picture, streamed so that memory does not grow with them."""

import csv
import glob
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import IO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from fullmatch.data.sources.csv_cells import neutralize_cell, neutralize_path
from fullmatch.data.sources.folders import IGNORED
from fullmatch.data.sources.picture_tables import list_encoded
from fullmatch.data.sources.places import is_table
from fullmatch.data.stores import pictures
from fullmatch.data.stores.encoded import PicturePlace, open_all
from fullmatch.errors import UserError, escape_controls
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.machine import choose_device
from fullmatch.inference.novelty import load_or_fit_detector, predict_with_descriptors
from fullmatch.inference.trained_run import TrainedRun

BATCH = 64
TOP = 3  # classes in a row
HEADER = (
    "path",
    "label",
    "confidence",
    "second",
    "second_confidence",
    "third",
    "third_confidence",
    "flag",
)

Item = str | PicturePlace | Image.Image  # a file, a picture inside one, or one in memory


class Flag(StrEnum):
    """Why a label should not be trusted; the values are those of the CSV column."""

    NONE = ""
    UNSURE = "unsure"
    NOVEL = "unlike"  # unlike the training pictures
    UNKNOWN = "unknown"  # of none of the classes, by a method that predicts this
    UNREADABLE = "unreadable"


class RankedClass(NamedTuple):
    """A class and how likely the model finds it."""

    name: str
    confidence: float


class Prediction(NamedTuple):
    """What the model says about one picture."""

    path: str  # '' for a picture in memory that has no file
    classes: tuple[RankedClass, ...]  # the most likely ones, best first; () if unreadable
    flag: Flag

    @property
    def label(self) -> str | None:
        """The most likely class; None if the picture cannot be read."""
        return self.classes[0].name if self.classes else None

    @property
    def confidence(self) -> float:
        """Of the label; 0 if the picture cannot be read."""
        return self.classes[0].confidence if self.classes else 0.0

    def row(self) -> list[str]:
        """The cells of `HEADER`."""
        cells = [
            cell for name, share in self.classes for cell in (neutralize_cell(name), f"{share:.4f}")
        ]
        path = neutralize_path(self.path)
        return [path, *cells, *[""] * (2 * TOP - len(cells)), self.flag.value]


class Predictor:
    """A run's model with its calibration and its novelty detector."""

    def __init__(self, run: TrainedRun, *, unsure: float = 0.7) -> None:
        if not 0 <= unsure <= 1:
            raise UserError(f"--unsure is {unsure}, expected a confidence from 0 to 1")
        self.unsure = unsure
        self.temperature = run.temperature
        self.detector, note = load_or_fit_detector(run)
        self.notes = [text for text in (note, run.calibration_note) if text]
        self.classifier = run.classifier.to(choose_device())

    def predict(self, items: Iterable[Item]) -> Iterator[Prediction]:
        """One prediction per file or image, in order; only one batch is held in memory."""
        remaining = iter(items)
        while batch := list(itertools.islice(remaining, BATCH)):
            yield from self.predict_batch(batch)

    def predict_batch(self, items: list[Item]) -> Iterator[Prediction]:
        decoded = list(pictures.map_in_threads(self.decode, items))
        readable = [pixels for pixels in decoded if pixels is not None]
        answers = self.classify(torch.from_numpy(np.stack(readable))) if readable else iter(())
        for item, pixels in zip(items, decoded, strict=True):
            classes, flag = ((), Flag.UNREADABLE) if pixels is None else next(answers)
            yield Prediction(name_item(item), classes, flag)

    @torch.no_grad()
    def probabilities(self, items: Iterable[Item]) -> NDArray[np.float32]:
        """(N, C) calibrated probabilities; `UserError` if a picture cannot be read."""
        remaining, parts = iter(items), [torch.zeros(0, len(self.classifier.classes))]
        device = next(self.classifier.network.parameters()).device
        while batch := list(itertools.islice(remaining, BATCH)):
            decoded = list(pictures.map_in_threads(self.decode, batch))
            for item, pixels in zip(batch, decoded, strict=True):
                if pixels is None:
                    raise UserError(
                        f"{name_item(item) or 'a picture'} cannot be read; leave it out"
                    )
            images = torch.from_numpy(np.stack([each for each in decoded if each is not None]))
            probs = self.classifier(images.to(device))
            parts.append(apply_temperature(probs, self.temperature or 1.0).float().cpu())
        return torch.cat(parts).numpy()

    def decode(self, item: Item) -> NDArray[np.uint8] | None:
        """Pixels of a file or of an image, or None if it cannot be read."""
        channels, height, width = self.classifier.picture
        stretch = self.classifier.augment.appearance.stretch
        if isinstance(item, Image.Image):
            convert = pictures.resize if stretch else pictures.resize_and_crop
            # A copy, since rotating it upright would change the caller's.
            return pictures.try_read(
                lambda image: convert(image.copy(), (height, width), channels), item
            )
        if isinstance(item, str) and not os.path.isfile(item):  # reading a pipe would never end
            return None

        def decode(item: str | PicturePlace) -> NDArray[np.uint8]:
            file = item if isinstance(item, str) else item.open()
            return pictures.decode(file, (height, width), channels, stretch=stretch)

        return pictures.try_read(decode, item)

    def classify(self, images: Tensor) -> Iterator[tuple[tuple[RankedClass, ...], Flag]]:
        """The most likely classes of each image, and its flag."""
        probs, features = predict_with_descriptors(self.classifier, images)
        probs = apply_temperature(probs, self.temperature or 1.0).cpu()
        names = self.classifier.classes
        top = probs.topk(min(TOP, len(names)), dim=1)
        novel = self.detector.is_novel(features) if self.detector else torch.zeros(len(images))
        unknown = self.find_unknown(images)
        for shares, codes, is_novel, is_unknown in zip(
            top.values.tolist(), top.indices.tolist(), novel.tolist(), unknown.tolist(), strict=True
        ):
            unsure = Flag.UNSURE if shares[0] < self.unsure else Flag.NONE
            ranked = (RankedClass(names[c], s) for c, s in zip(codes, shares, strict=True))
            trusted = Flag.UNKNOWN if is_unknown else unsure
            yield tuple(ranked), Flag.NOVEL if is_novel else trusted

    @torch.no_grad()
    def find_unknown(self, images: Tensor) -> Tensor:
        """(B,) bool: which images are predicted to be of none of the classes."""
        if not self.classifier.algorithm.predicts_unknown:
            return torch.zeros(len(images), dtype=torch.bool)
        device = next(self.classifier.network.parameters()).device
        probs = self.classifier.predict_open_set(images.to(device))
        return probs.argmax(dim=1).cpu() == len(self.classifier.classes)


def name_item(item: Item) -> str:
    """Its path, or its file and row; '' for an image without a file."""
    if isinstance(item, PicturePlace):
        return item.describe()
    return item if isinstance(item, str) else str(getattr(item, "filename", ""))


def list_items(places: Sequence[str]) -> Iterator[Item]:
    """The files at these places, and the pictures in tables and shards."""
    items: list[Iterator[Item]] = [
        open_all(list_encoded(place)) if is_table(place) else list_files([place])
        for place in places
    ]
    return itertools.chain.from_iterable(items)


def list_files(places: Sequence[str]) -> Iterator[str]:
    """The files at these paths, patterns and folders, in the order the disk lists them.

    Hidden files in folders are skipped; all others are listed, whatever their names.
    """
    for place in places:
        if not os.path.exists(place) and next(match_pattern(place), None) is None:
            raise UserError(f"no picture, folder or pattern {place}; check the spelling")
    return itertools.chain.from_iterable(map(files_at, places))


def files_at(place: str) -> Iterator[str]:
    if os.path.isdir(place):
        return walk_folder(place)
    return iter((place,)) if os.path.exists(place) else match_pattern(place)


def match_pattern(pattern: str) -> Iterator[str]:
    for path in glob.iglob(pattern, recursive=True):
        if not os.path.isdir(path):
            yield path


def walk_folder(folder: str, parents: tuple[str, ...] = ()) -> Iterator[str]:
    """All files below a folder; not sorted, since that would hold all names in memory."""
    real = os.path.realpath(folder)
    if real in parents:  # a link to a parent folder
        return
    try:
        entries = os.scandir(folder)
    except OSError:
        yield folder  # gets a row, flagged as unreadable
        return
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name.lower() in IGNORED:
                continue
            if os.path.isdir(entry.path):  # entry.is_dir() raises on circular links
                yield from walk_folder(entry.path, (*parents, real))
            else:
                yield entry.path


def write_csv(predictions: Iterable[Prediction], file: IO[str]) -> Counter[Flag]:
    """Write the rows as they come; return how many have each flag.

    A terminal shows the names of strangers' files and classes without obeying them.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    flags = Counter[Flag]()
    in_terminal = file.isatty()
    for prediction in predictions:
        row = prediction.row()
        writer.writerow(map(escape_controls, row) if in_terminal else row)
        flags[prediction.flag] += 1
    return flags
