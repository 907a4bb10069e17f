"""What a tracker is told about a run, and the trackers by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from fullmatch.errors import UserError, did_you_mean
from fullmatch.storage.json_files import JSON
from fullmatch.storage.metrics_log import LogRecord

Setting = str | int | float | bool

# Where each one is, and what it needs: the package to import, and the extra that installs it.
TRACKERS = {
    "tensorboard": ("tensorboard_events", "tensorboard"),
    "wandb": ("weights_and_biases", "wandb"),
    "mlflow": ("mlflow_runs", "mlflow"),
}


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker sees it when it starts or resumes."""

    folder: Path
    settings: Mapping[str, Setting]  # by their dotted names
    step: int = 0  # from which records follow; above 0 if the run is resumed
    identity: str = ""  # by which the tracker knows a resumed run

    @property
    def name(self) -> str:
        return self.folder.resolve().name


@dataclass(frozen=True)
class Outcome:
    """What a tracker gets at the end."""

    scores: Mapping[str, float]
    summary: str  # in Markdown
    figures: Sequence[Path] = field(default_factory=tuple)
    files: Sequence[Path] = field(default_factory=tuple)  # the report, result and settings


class Tracker(Protocol):
    """One place that curves, settings and results go to."""

    def begin(self, run: TrackedRun) -> str:
        """Start, or continue; returns the identity to continue with."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """The values of one record."""

    def finish(self, outcome: Outcome) -> None:
        """The run is finished, and nothing follows."""

    def close(self) -> None:
        """The process stops here; the run may be resumed by another one."""


def make_tracker(name: str) -> Tracker:
    """A tracker by its name; `UserError` if it is unknown or its package is missing."""
    if name not in TRACKERS:
        hint = did_you_mean(name, TRACKERS)
        raise UserError(f"no tracker {name!r}, expected one of {', '.join(TRACKERS)}{hint}")
    module, package = TRACKERS[name]
    if find_spec(package) is None:
        raise UserError(
            f"--track {name} needs a package; install it with: pip install 'fullmatch[{package}]'"
        )
    make = cast(Callable[[], Tracker], import_module(f"fullmatch.tracking.{module}").make)
    return make()


def flatten_record(record: LogRecord) -> dict[str, float]:
    """The values of a record by name; scores are such as test/teacher.top1."""
    scores = {
        f"test/{who}.{name}": value
        for who, values in record.evaluation.items()
        for name, value in values.items()
    }
    training = {f"train/{name}": value for name, value in record.metrics.items()}
    return training | scores | {"seconds": record.seconds}


def flatten_settings(table: JSON, prefix: str = "") -> dict[str, Setting]:
    """Settings by their dotted names; lists become text."""
    flat: dict[str, Setting] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= flatten_settings(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, bool | int | float) else str(value)
    return flat
