"""A complete run folder as values, finished or not; needs no torch."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fullmatch.files.reading import SETTINGS_LIMIT, parse_toml, read_bounded_text
from fullmatch.storage.json_files import JSON, read_json
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.predictions import Predictions
from fullmatch.storage.result import Estimate, FinalScores, RunResult
from fullmatch.storage.run_folder import RunFolder, read_file

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class StepCurve:
    """Values over training steps."""

    steps: Numbers
    values: Numbers

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> "StepCurve":
        pairs = np.array(list(points), dtype=np.float64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    def thinned(self, most: int = 300) -> "StepCurve":
        """Means of neighbors, so that a long run draws as quickly as a short one."""
        if len(self.steps) <= most:
            return self
        parts = [np.array_split(each, most) for each in (self.steps, self.values)]
        steps, values = (np.array([part.mean() for part in each]) for each in parts)
        # The end is what people read off, so it stays as it was logged.
        steps[-1], values[-1] = self.steps[-1], self.values[-1]
        return StepCurve(steps, values)


@dataclass(frozen=True)
class RunSettings:
    """What readers need of config.toml; building the run needs `experiment.settings`."""

    algorithm: str  # the name people use: fullmatch rather than full-fixmatch
    data: str  # a data set's name, or a path
    root: str | None
    size: int | None
    labels: int | None
    unknown_classes: tuple[str, ...]  # classes whose labels are hidden
    steps: int
    table: JSON  # all settings, as written

    @classmethod
    def parse(cls, table: JSON) -> "RunSettings":
        """`KeyError`, `TypeError` or `ValueError` if this is not the config of a run."""
        data, spec, training = table["data"], table["algorithm"], table["training"]
        if not all(isinstance(part, dict) for part in (data, spec, training)):
            raise ValueError("a section is not a table")
        plain = str(spec["name"]).removeprefix("full-")
        full = "fullmatch" if plain == "fixmatch" else f"full-{plain}"
        return cls(
            algorithm=full if "full" in spec else str(spec["name"]),
            data=str(data["name"]),
            root=checked_value(data.get("root"), str, "data.root"),
            size=checked_value(data.get("size"), int, "data.size"),
            labels=checked_value(data.get("labels"), int, "data.labels"),
            unknown_classes=tuple(
                checked_value(name, str, "data.unknown_classes")
                for name in checked_value(
                    data.get("unknown_classes", []), list, "data.unknown_classes"
                )
            ),
            steps=checked_value(training["steps"], int, "training.steps"),
            table=table,
        )


def checked_value(value: Any, kind: type, name: str) -> Any:
    """The value of a setting, which may be missing."""
    if value is not None and type(value) is not kind:
        raise ValueError(f"{name} is {value!r}")
    return value


@dataclass(frozen=True)
class StoredRun:
    """One run, finished or not; `baseline` is the same network on the labels only."""

    folder: RunFolder
    settings: RunSettings
    records: tuple[LogRecord, ...]
    result: RunResult | None  # None until the run is finished
    predictions: Predictions | None
    label_counts: Counter[int]  # labeled images by class; empty when the folder does not say
    baseline: "StoredRun | None" = None

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def algorithm(self) -> str:
        return self.settings.algorithm

    @property
    def data(self) -> str:
        return self.result.data if self.result else Path(self.settings.data).name

    @property
    def finished(self) -> bool:
        return self.result is not None

    @property
    def steps(self) -> int:
        return self.settings.steps

    @property
    def steps_done(self) -> int:
        return self.steps if self.finished else self.records[-1].step if self.records else 0

    @property
    def benchmark(self) -> bool:
        """Its test images were looked at during training, as is usual for benchmarks."""
        return any(record.evaluation for record in self.records)

    @property
    def scores(self) -> FinalScores | None:
        """Of the averaged model on the test images; None without them, or before the end."""
        return self.result.teacher if self.result else None

    @property
    def estimate(self) -> Estimate | None:
        """By cross-validation, where there are no test images."""
        return self.result.estimate if self.result else None

    @property
    def classes(self) -> tuple[str, ...]:
        return self.result.classes if self.result else ()

    @property
    def has_unlabeled(self) -> bool:
        return self.result is None or self.result.has_unlabeled

    def metric(self, name: str) -> StepCurve:
        """A logged metric; without points when it was never logged."""
        logged = (record for record in self.records if name in record.metrics)
        return StepCurve.of((record.step, record.metrics[name]) for record in logged)

    def judged_metric(self, name: str) -> StepCurve:
        """A metric that needs true labels: in own pictures only the labeled ones have them."""
        return self.metric(name) if self.benchmark else StepCurve.of(())

    def accuracy(self, model: str) -> StepCurve:
        """Test accuracy of student or teacher during training."""
        evaluated = (record for record in self.records if model in record.evaluation)
        return StepCurve.of((r.step, r.evaluation[model]["top1"]) for r in evaluated)


def read_run(path: Path) -> StoredRun:
    """Read a run folder; a damaged file is an error that names it."""
    folder = RunFolder.existing(path)
    result = folder.read_result() if folder.finished else None
    by_class = dict(enumerate(result.labels_by_class)) if result else {}
    baseline = RunFolder(folder.baseline)
    return StoredRun(
        folder=folder,
        settings=read_settings(folder),
        records=tuple(folder.read_records()),
        result=result,
        predictions=folder.read_predictions(),
        label_counts=Counter(by_class or split_targets(folder)),
        baseline=read_run(baseline.path) if folder.has_baseline else None,
    )


def read_settings(folder: RunFolder) -> RunSettings:
    def read(path: Path) -> RunSettings:
        return RunSettings.parse(parse_toml(read_bounded_text(path, SETTINGS_LIMIT)))

    return read_file(folder.config, read, "choose another run folder")


def split_targets(folder: RunFolder) -> list[int]:
    """The classes of the labeled images by split.json; none where there is no such file."""

    def read(path: Path) -> list[int]:
        targets = read_json(path).get("targets", [])
        if not isinstance(targets, list) or not all(type(target) is int for target in targets):
            raise ValueError("targets are not classes")
        return targets

    return read_file(folder.split, read, "restore it") if folder.split.exists() else []
