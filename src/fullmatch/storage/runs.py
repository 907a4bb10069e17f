"""What a run folder says, read without torch: settings, log, result and test predictions."""

import json
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from fullmatch.errors import UserError

Numbers = NDArray[np.float64]
Table = dict[str, Any]
BINS = 15  # of confidence, as in the expected calibration error


@dataclass(frozen=True)
class Curve:
    """Values over training steps."""

    steps: Numbers
    values: Numbers

    def thinned(self, most: int = 300) -> "Curve":
        """Means of neighbours, so that a long run draws as quickly as a short one."""
        if len(self.steps) <= most:
            return self
        parts = [np.array_split(each, most) for each in (self.steps, self.values)]
        steps, values = (np.array([part.mean() for part in each]) for each in parts)
        # The end is what people read off, so it stays as it was logged.
        steps[-1], values[-1] = self.steps[-1], self.values[-1]
        return Curve(steps, values)


@dataclass(frozen=True)
class Predictions:
    """Of the averaged model, on the test images or on others."""

    probabilities: NDArray[np.floating[Any]]  # (N, C), as saved: it may be large
    labels: NDArray[np.int64]  # (N,), -1 where nobody knows

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.probabilities.argmax(axis=1)
        return found

    @cached_property
    def confidence(self) -> Numbers:
        found: Numbers = self.probabilities.max(axis=1).astype(np.float64)
        return found

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.predicted == self.labels
        return found

    @property
    def wrong(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = ~self.right & (self.labels >= 0)
        return found

    def surest(self, count: int) -> list[int]:
        """Of each predicted class in turn, so that an easy class does not take every place."""
        order = np.argsort(-self.confidence, kind="stable")
        same = self.predicted[order]
        turn = [int((same[:place] == same[place]).sum()) for place in range(len(order))]
        return [int(i) for i in order[np.argsort(turn, kind="stable")][:count]]

    def least_sure(self, count: int) -> list[int]:
        return [int(i) for i in np.argsort(self.confidence, kind="stable")[:count]]

    def surest_mistakes(self, count: int) -> list[int]:
        wrong = np.flatnonzero(self.wrong)
        order = np.argsort(-self.confidence[wrong], kind="stable")
        return [int(i) for i in wrong[order][:count]]

    def reliability(self) -> list[tuple[float, float, int]]:
        """Mean confidence, accuracy and images of every bin that has any."""
        bins = np.minimum((self.confidence * BINS).astype(int), BINS - 1)
        members = (bins == number for number in range(BINS))
        return [
            (float(self.confidence[m].mean()), float(self.right[m].mean()), int(m.sum()))
            for m in members
            if m.any()
        ]


@dataclass(frozen=True)
class Run:
    """One run, finished or not; `labels_only` is the same network without unlabeled images."""

    path: Path
    config: Table
    records: tuple[Table, ...]
    result: Table  # empty until the run is finished
    predictions: Predictions | None
    label_counts: Counter[int]  # labeled images by class; empty when the folder does not say
    labels_only: "Run | None" = None

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def algorithm(self) -> str:
        spec = self.config["algorithm"]
        name = str(spec["name"]).removeprefix("full-")
        if "full" not in spec:
            return str(spec["name"])
        return "fullmatch" if name == "fixmatch" else f"full-{name}"

    @property
    def data(self) -> str:
        return str(self.result.get("data") or Path(self.config["data"]["name"]).name)

    @property
    def finished(self) -> bool:
        return bool(self.result)

    @property
    def steps(self) -> int:
        return int(self.config["training"]["steps"])

    @property
    def steps_done(self) -> int:
        return self.steps if self.finished else int(self.records[-1]["step"] if self.records else 0)

    @property
    def benchmark(self) -> bool:
        """Its test images were looked at during training, as is usual for benchmarks."""
        return any("evaluation" in record for record in self.records)

    @property
    def scores(self) -> Table:
        """Of the averaged model on the test images; empty without them, or before the end."""
        found: Table = self.result.get("teacher", {})
        return found

    @property
    def estimate(self) -> Table:
        """On held-out labels, where there are no test images; empty if nobody asked them."""
        found: Table = self.result.get("honest") or {}
        return found

    @property
    def classes(self) -> list[str]:
        return [str(name) for name in self.result.get("classes", [])]

    def metric(self, name: str) -> Curve:
        """A logged metric; without points when it was never logged."""
        return curve((r["step"], r[name]) for r in self.records if name in r)

    def judged(self, name: str) -> Curve:
        """A metric that needs true labels: of own pictures only those it learned from have them."""
        return self.metric(name) if self.benchmark else curve(())

    def accuracy(self, who: str) -> Curve:
        """Test accuracy of student or teacher while training."""
        seen = (r for r in self.records if who in r.get("evaluation", {}))
        return curve((r["step"], r["evaluation"][who]["top1"]) for r in seen)


def any_unlabeled(result: Table) -> bool:
    """Whether there are more images than labels; else the labeled ones stand in for them."""
    return "unlabeled" not in result or result["unlabeled"] != result["labels"]


def curve(points: Any) -> Curve:
    pairs = np.array(list(points), dtype=np.float64).reshape(-1, 2)
    return Curve(pairs[:, 0], pairs[:, 1])


def read_run(path: Path) -> Run:
    """Read a run folder; a damaged file is an error that names it."""
    if not (path / "config.toml").is_file():
        raise UserError(
            f"{path} is no run folder (it has no config.toml); see the folders under runs/"
        )
    beside = path / "labels-only"
    split = load(path / "split.json", read_json) or {}
    result = load(path / "result.json", read_json) or {}
    by_class = dict(enumerate(result.get("labels_by_class", ())))
    run = Run(
        path=path,
        config=load(path / "config.toml", lambda p: tomllib.loads(p.read_text(encoding="utf-8"))),
        records=tuple(load(path / "metrics.jsonl", read_log) or ()),
        result=result,
        predictions=load(path / "predictions.safetensors", read_predictions),
        label_counts=Counter(by_class or split.get("targets", ())),
        labels_only=read_run(beside) if (beside / "config.toml").is_file() else None,
    )
    if not {"data", "algorithm", "training"} <= run.config.keys():
        raise UserError(f"{path / 'config.toml'} is not the config of a run; name another folder")
    return run


def load(path: Path, read: Callable[[Path], Any]) -> Any:
    """What the file holds, or None when there is none."""
    try:
        return read(path) if path.exists() else None
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise UserError(f"cannot read {path}: {error}; it is damaged, or not of a run") from None


def read_predictions(path: Path) -> Predictions:
    saved = load_file(path)
    return Predictions(saved["probabilities"], saved["labels"].astype(np.int64))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_log(path: Path) -> list[Table]:
    """The records of metrics.jsonl; the last line may still be half written."""
    *whole, last = path.read_text(encoding="utf-8").split("\n")
    records: list[Table] = [json.loads(line) for line in whole if line]
    try:
        return records + ([json.loads(last)] if last else [])
    except ValueError:
        return records
