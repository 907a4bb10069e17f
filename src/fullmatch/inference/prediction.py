"""Labels for picture files: one row a file, streamed, so that a million need little memory."""

import csv
import glob
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data.sources.folders import IGNORED
from fullmatch.data.stores import pictures
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import calibrated
from fullmatch.inference.novelty import familiarity_of, seen
from fullmatch.inference.trained_run import TrainedRun

BATCH = 64
TOP = 3
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


class Prediction(NamedTuple):
    """What is said of one file."""

    path: str
    ranked: tuple[tuple[str, float], ...]  # classes with their confidences; () if unreadable
    flag: str  # "", "unsure", "unlike" or "unreadable"

    def row(self) -> list[str]:
        """The cells of `HEADER`."""
        cells = [cell for name, share in self.ranked for cell in (name, f"{share:.4f}")]
        return [self.path, *cells, *[""] * (2 * TOP - len(cells)), self.flag]


class Predictor:
    """A run's model, with its calibration and its idea of what is familiar."""

    def __init__(self, run: TrainedRun, *, unsure: float = 0.7) -> None:
        if not 0 <= unsure <= 1:
            raise UserError(f"--unsure is {unsure}, expected a confidence from 0 to 1")
        self.unsure = unsure
        self.temperature = run.temperature
        self.familiarity, note = familiarity_of(run)
        self.notes = [said for said in (note, run.uncalibrated) if said]
        self.classifier = run.classifier.to("cuda" if torch.cuda.is_available() else "cpu")

    def predictions(self, files: Iterable[str]) -> Iterator[Prediction]:
        """One for each file, in order; only a batch of them is held at a time."""
        rest = iter(files)
        while batch := list(itertools.islice(rest, BATCH)):
            yield from self.batch(batch)

    def batch(self, files: list[str]) -> Iterator[Prediction]:
        channels, height, width = self.classifier.image

        def decoded(file: str) -> NDArray[np.uint8] | None:
            if not os.path.isfile(file):  # a pipe would be waited for
                return None
            return pictures.try_read(
                lambda path: pictures.decode(path, (height, width), channels), file
            )

        found = list(pictures.map_in_threads(decoded, files))
        readable = [pixels for pixels in found if pixels is not None]
        answers = self.ranked(torch.from_numpy(np.stack(readable))) if readable else iter(())
        for file, pixels in zip(files, found, strict=True):
            ranked, flag = ((), "unreadable") if pixels is None else next(answers)
            yield Prediction(file, ranked, flag)

    def ranked(self, images: Tensor) -> Iterator[tuple[tuple[tuple[str, float], ...], str]]:
        """The likeliest classes of each image, and its flag."""
        probs, features = seen(self.classifier, images)
        probs = calibrated(probs, self.temperature or 1.0).cpu()
        classes = self.classifier.classes
        top = probs.topk(min(TOP, len(classes)), dim=1)
        strange = (
            self.familiarity.unlike(features) if self.familiarity else torch.zeros(len(images))
        )
        for shares, codes, unlike in zip(
            top.values.tolist(), top.indices.tolist(), strange.tolist(), strict=True
        ):
            flag = "unlike" if unlike else "unsure" if shares[0] < self.unsure else ""
            yield tuple((classes[c], s) for c, s in zip(codes, shares, strict=True)), flag


def picture_paths(places: Sequence[str]) -> Iterator[str]:
    """Files named, matched by a pattern, or anywhere below a folder, in the disk's own order.

    Hidden files of a folder are passed over; all others are listed, whatever they are called.
    """
    for place in places:
        if not os.path.exists(place) and next(matching(place), None) is None:
            raise UserError(f"no picture, folder or pattern {place}; check how it is written")
    return itertools.chain.from_iterable(map(paths_of, places))


def paths_of(place: str) -> Iterator[str]:
    if os.path.isdir(place):
        return below(place)
    return iter((place,)) if os.path.exists(place) else matching(place)


def matching(pattern: str) -> Iterator[str]:
    for path in glob.iglob(pattern, recursive=True):
        if not os.path.isdir(path):
            yield path


def below(folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Files of a folder, never sorted: that would take all their names at once."""
    real = os.path.realpath(folder)
    if real in above:  # a link that leads back up
        return
    try:
        entries = os.scandir(folder)
    except OSError:
        yield folder  # so that it has a row, as unreadable
        return
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name.lower() in IGNORED:
                continue
            if os.path.isdir(entry.path):  # unlike the entry, it bears links that go nowhere
                yield from below(entry.path, (*above, real))
            else:
                yield entry.path


def write_csv(predictions: Iterable[Prediction], file: IO[str]) -> Counter[str]:
    """Write the rows as they come; returns how many had each flag."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    flags = Counter[str]()
    for prediction in predictions:
        writer.writerow(prediction.row())
        flags[prediction.flag] += 1
    return flags
