"""The files of a run, each read and written in one place."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError

from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, read_bounded
from fullmatch.storage.atomic import replacing
from fullmatch.storage.class_scores import read_result_table, write_result
from fullmatch.storage.features import PictureFeatures, read_features
from fullmatch.storage.findings import RunFindings, read_findings
from fullmatch.storage.json_files import LARGEST, DamagedFile, from_json, write_json
from fullmatch.storage.manifest import FileState, Manifest, make_manifest, read_manifest
from fullmatch.storage.metrics_log import LogRecord, read_records
from fullmatch.storage.picture_map import PictureMap, read_map
from fullmatch.storage.predictions import Predictions, read_predictions
from fullmatch.storage.result import RunResult, StrategyResult, parse_result
from fullmatch.storage.result_checks import check_predictions, check_result
from fullmatch.storage.run_places import RunPlaces

T = TypeVar("T")
MOST_ROLLBACKS = 100  # far more than a run tries
READ_ERRORS = (OSError, ValueError, LookupError, TypeError, ArithmeticError, SafetensorError)


class RunFolder(RunPlaces):
    """The files of one run, read and written."""

    def read_result(self) -> RunResult:
        """What a finished run reports about itself."""
        if not self.finished:
            raise UserError(f"{self.path} is not finished; resume with: {self.resume_command}")
        return read_file(
            self.result,
            lambda path: check_result(parse_result(read_result_table(path, self.scores))),
            self.repair,
        )

    def write_result(self, result: RunResult) -> None:
        """Write the result, then the manifest of it and all that was written before."""
        self.manifest.unlink(missing_ok=True)  # a process killed in between leaves none
        write_result(self.result, self.scores, result)
        self.write_manifest()

    def write_manifest(self) -> None:
        write_json(self.manifest, make_manifest(self.handed_over))

    def read_manifest(self) -> Manifest | None:
        """None for runs of earlier versions, and for those that were killed before writing it."""
        if not self.manifest.exists():
            return None
        return read_file(self.manifest, read_manifest, f"delete it, then {self.repair}")

    def changed_files(self) -> list[Path]:
        """Files that are not as the run wrote them; none where it kept no hashes."""
        manifest = self.read_manifest()
        if manifest is None:
            return []
        good = (FileState.WHOLE, FileState.UNCHECKED)
        return [path for path in self.handed_over if manifest.state_of(path) not in good]

    def set_aside(self, path: Path) -> None:
        """Make room for a new file; the old one is kept under another name."""
        if os.path.lexists(path):
            path.replace(path.with_name(f"{path.name}.damaged"))

    def read_predictions(self) -> Predictions | None:
        """Of the teacher on the test images; None where there are none."""
        if not self.predictions.exists():
            return None

        def read(path: Path) -> Predictions:
            predictions = read_predictions(path)
            if self.finished:
                check_predictions(predictions, self.read_result())
            return predictions

        return read_file(self.predictions, read, self.repair)

    def read_features(self) -> PictureFeatures | None:
        """Of all pictures, by a pretrained network; None where the run has none."""
        if not self.features.exists():
            return None

        def read(path: Path) -> PictureFeatures:
            features = read_features(path)
            self.check_classes(features.classes)
            return features

        return read_file(self.features, read, "delete it: it is not needed to predict")

    def read_map(self) -> PictureMap | None:
        """Of all pictures; None where the run has none."""
        if not self.map.exists():
            return None

        def read(path: Path) -> PictureMap:
            picture_map = read_map(path)
            self.check_classes(picture_map.classes)
            return picture_map

        return read_file(self.map, read, "delete it: then the report has no map")

    def check_classes(self, classes: tuple[str, ...]) -> None:
        """`ValueError` where a file is about other classes than the result."""
        if self.finished and classes != self.read_result().classes:
            raise ValueError("it is about other classes than result.json")

    def read_findings(self) -> RunFindings | None:
        """Pictures that a person should look at; None where nothing was looked for."""
        if not self.findings.exists():
            return None

        def read(path: Path) -> RunFindings:
            findings, features = read_findings(path), self.read_features()
            if features is not None and any(row >= len(features) for row in findings.rows):
                raise ValueError(f"it is about more pictures than {self.features.name}")
            return findings

        return read_file(self.findings, read, "delete it: then the report does without")

    def read_records(self) -> list[LogRecord]:
        return read_file(self.metrics, read_records, "train again")

    def append_record(self, record: LogRecord) -> None:
        require_own(self.metrics)
        with self.metrics.open("a", encoding="utf-8") as log:
            log.write(record.to_line() + "\n")

    def truncate_metrics(self, size: int) -> None:
        """Forget what was logged after a checkpoint."""
        require_own(self.metrics)
        if self.metrics.exists():
            os.truncate(self.metrics, min(size, self.metrics.stat().st_size))

    def metrics_size(self) -> int:
        return self.metrics.stat().st_size if self.metrics.exists() else 0

    def read_rollbacks(self) -> list[int]:
        """Steps that training went back to after a NaN loss, in order."""
        if not self.rollbacks.exists():
            return []
        return read_file(self.rollbacks, parse_steps, "train again")

    def write_rollbacks(self, steps: list[int]) -> None:
        write_json(self.rollbacks, steps)

    def read_strategies(self) -> tuple[StrategyResult, ...] | None:
        """Strategies that were compared before training; None where they are yet to be."""
        if not self.strategies.exists():
            return ()
        return read_file(self.strategies, parse_strategies, "train again")

    def write_strategies(self, strategies: tuple[StrategyResult, ...] | None) -> None:
        write_json(self.strategies, strategies)

    def write_text(self, path: Path, text: str) -> None:
        """Replace a file at once, so that a reader never sees half of it."""
        with replacing(path) as place:
            place.write_text(text, encoding="utf-8")


def read_file(path: Path, read: Callable[[Path], T], advice: str) -> T:
    """What `read` makes of a file of a run; any damage ends in the same kind of line."""
    try:
        return read(path)
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        if isinstance(error, KeyError):
            reason = f"{error.args[0]} is missing"
        raise DamagedFile(path, reason or type(error).__name__, advice) from None


def require_own(path: Path) -> None:
    """`DamagedFile` for a link, which would lead to another file, and for pipes and the like."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise DamagedFile(path, "a link, or no regular file", "put the file itself there")


def parse_steps(path: Path) -> list[int]:
    steps = parse_json(read_bounded(path))
    if not isinstance(steps, list) or not all(type(step) is int for step in steps):
        raise ValueError("not a list of steps")
    if len(steps) > MOST_ROLLBACKS or not all(0 <= step < LARGEST for step in steps):
        raise ValueError("steps that no run went back to")
    return steps


def parse_strategies(path: Path) -> tuple[StrategyResult, ...] | None:
    rows = parse_json(read_bounded(path))
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of strategies")
    return tuple(from_json(StrategyResult, row) for row in rows)
