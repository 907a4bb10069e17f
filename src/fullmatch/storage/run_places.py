"""Where a run lives on disk: made once, locked while in use, never touched by another run."""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from safetensors import SafetensorError

from fullmatch.errors import UserError
from fullmatch.storage.filled_folders import make_filled
from fullmatch.storage.locks import locked
from fullmatch.storage.private_folders import remove_leftovers

BASELINE = "baseline"  # a run of its own inside: the same network on the labels only
ESTIMATE = "estimate"  # what cross-validation has finished so far
# The same folders in runs of fullmatch 0.1.
EARLIER_NAMES = {BASELINE: "labels-only", ESTIMATE: "folds"}


class RunPlaces:
    """The folder of one run, and the files in it that have a name."""

    def __init__(self, path: Path, *, new: bool = False, numbered: bool = False) -> None:
        self.path, self.new, self.numbered = path, new, numbered
        self.config = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.split = path / "split.json"
        self.checkpoints = path / "checkpoints"
        self.rollbacks = path / "rollbacks.json"  # where training went back after a NaN loss
        self.model = path / "model.safetensors"
        self.predictions = path / "predictions.safetensors"  # of the teacher, on the test images
        self.learned = path / "learned.safetensors"  # digests of the pictures it learned from
        self.novelty = path / "familiar.safetensors"  # features of training pictures
        self.features = path / "features.safetensors"  # of all pictures, by pretrained weights
        self.map = path / "map.safetensors"  # of all pictures, for the report
        self.findings = path / "findings.json"  # pictures to look at, by their features
        self.strategies = path / "strategies.json"  # compared before training; null: not yet
        self.feature_cache = path / "feature-cache"  # rows of a feature pass, to continue it
        self.result = path / "result.json"
        self.scores = path / "scores.safetensors"  # part of the result, with many classes
        self.manifest = path / "manifest.json"  # hashes of what the run hands over
        self.baseline = self.inner_folder(BASELINE)
        self.estimate = self.inner_folder(ESTIMATE)

    @classmethod
    def planned(cls, name: str, out: Path | None = None) -> Self:
        """The folder of a new run, not made yet: `out`, or the next free number under runs/."""
        if out is None:
            return cls(Path("runs") / f"{name}-001", new=True, numbered=True)
        if os.path.exists(out):
            raise taken(out)
        return cls(out, new=True)

    @classmethod
    def existing(cls, path: Path) -> Self:
        folder = cls(path)
        if not folder.started:
            raise UserError(
                f"{path} is not a run folder (it has no config.toml); see the folders under runs/"
            )
        return folder

    @property
    def started(self) -> bool:
        return os.path.isfile(self.config)

    @property
    def finished(self) -> bool:
        return os.path.exists(self.result)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the labels-only run inside another run."""
        parent = RunPlaces(self.path.parent)
        return parent.started and parent.baseline == self.path

    @property
    def has_baseline(self) -> bool:
        """A baseline has none itself, even where a link makes it look so."""
        return RunPlaces(self.baseline).started and not self.is_baseline

    @property
    def resume_command(self) -> str:
        """A baseline is resumed through the run it belongs to."""
        run = self.path.parent if self.is_baseline else self.path
        return f"fullmatch resume {shlex.quote(str(run))}"

    @property
    def repair(self) -> str:
        """What to do about a file that is made from the newest checkpoint."""
        return f"write it again with: {self.resume_command}"

    @property
    def handed_over(self) -> list[Path]:
        """The files that a finished run is used by; the manifest has their hashes."""
        return [self.model, self.predictions, self.scores, self.result]

    def inner_folder(self, name: str) -> Path:
        """A folder inside this one, under the name that it has in older runs where it is there."""
        earlier = self.path / EARLIER_NAMES[name]
        return earlier if os.path.isdir(earlier) else self.path / name

    def make(self, fill: Callable[[Self], None] | None = None) -> Self:
        """Make the folder on disk; a numbered one takes the first number that is free by now.

        What `fill` writes is there from the first moment on, also for a process that is killed.
        """
        path = self.path
        while True:
            try:
                if self.new and fill is not None:
                    make_filled(path, lambda place: fill(type(self)(place)))
                    return type(self)(path)
                path.mkdir(parents=True, exist_ok=not self.new)
                folder = type(self)(path)
                if fill is not None:
                    with folder.writing():
                        fill(folder)
                return folder
            except FileExistsError:
                if not self.numbered:
                    raise taken(path) from None
                name, _, number = path.name.rpartition("-")
                path = path.with_name(f"{name}-{int(number) + 1:03d}")
            except OSError as error:
                raise UserError(
                    f"cannot make the run folder {path}: {error.strerror}; "
                    "choose another with --out"
                ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock ends with its process, whose leftovers are removed."""
        with locked(self.path):
            remove_leftovers(self.path)
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A full or vanished disk ends in one line that says how to go on."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(
                f"cannot write to {self.path}: {reason}; fix that, then resume with: "
                f"{self.resume_command}"
            ) from None


def taken(path: Path) -> UserError:
    folder = RunPlaces(path)
    kind = ", and is a file" if path.is_file() else ", and a run never overwrites anything"
    other = f", or continue the run with: {folder.resume_command}" if folder.started else ""
    return UserError(f"{path} exists already{kind}; choose a new folder with --out{other}")
