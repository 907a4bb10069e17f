"""Labels for picture files, one row per file, streamed so that memory does not grow with them."""

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
from torch import Tensor

from fullmatch.data.sources.folders import IGNORED
from fullmatch.data.stores import pictures
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.machine import choose_device
from fullmatch.inference.novelty import load_or_fit_detector, predict_with_features
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


class Flag(StrEnum):
    """Why a label should not be trusted; the values are those of the CSV column."""

    NONE = ""
    UNSURE = "unsure"
    NOVEL = "unlike"  # unlike the training pictures
    UNREADABLE = "unreadable"


class RankedClass(NamedTuple):
    """A class and how likely the model finds it."""

    name: str
    confidence: float


class Prediction(NamedTuple):
    """What the model says about one file."""

    path: str
    classes: tuple[RankedClass, ...]  # the most likely ones, best first; () if unreadable
    flag: Flag

    def row(self) -> list[str]:
        """The cells of `HEADER`."""
        cells = [cell for name, share in self.classes for cell in (name, f"{share:.4f}")]
        return [self.path, *cells, *[""] * (2 * TOP - len(cells)), self.flag.value]


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

    def predict(self, files: Iterable[str]) -> Iterator[Prediction]:
        """One prediction per file, in order; only one batch is held in memory."""
        remaining = iter(files)
        while batch := list(itertools.islice(remaining, BATCH)):
            yield from self.predict_batch(batch)

    def predict_batch(self, files: list[str]) -> Iterator[Prediction]:
        decoded = list(pictures.map_in_threads(self.decode, files))
        readable = [pixels for pixels in decoded if pixels is not None]
        answers = self.classify(torch.from_numpy(np.stack(readable))) if readable else iter(())
        for file, pixels in zip(files, decoded, strict=True):
            classes, flag = ((), Flag.UNREADABLE) if pixels is None else next(answers)
            yield Prediction(file, classes, flag)

    def decode(self, file: str) -> NDArray[np.uint8] | None:
        """Pixels of a file, or None if it cannot be read."""
        channels, height, width = self.classifier.image
        if not os.path.isfile(file):  # reading a pipe would wait forever
            return None
        return pictures.try_read(
            lambda path: pictures.decode(path, (height, width), channels), file
        )

    def classify(self, images: Tensor) -> Iterator[tuple[tuple[RankedClass, ...], Flag]]:
        """The most likely classes of each image, and its flag."""
        probs, features = predict_with_features(self.classifier, images)
        probs = apply_temperature(probs, self.temperature or 1.0).cpu()
        names = self.classifier.classes
        top = probs.topk(min(TOP, len(names)), dim=1)
        novel = self.detector.is_novel(features) if self.detector else torch.zeros(len(images))
        for shares, codes, is_novel in zip(
            top.values.tolist(), top.indices.tolist(), novel.tolist(), strict=True
        ):
            unsure = Flag.UNSURE if shares[0] < self.unsure else Flag.NONE
            ranked = (RankedClass(names[c], s) for c, s in zip(codes, shares, strict=True))
            yield tuple(ranked), Flag.NOVEL if is_novel else unsure


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
    """Write the rows as they come; return how many have each flag."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    flags = Counter[Flag]()
    for prediction in predictions:
        writer.writerow(prediction.row())
        flags[prediction.flag] += 1
    return flags
