"""An entry of the ledger: one finished run, as typed values and as JSON."""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fullmatch.storage.json_files import JSON, WrongValue, from_json
from fullmatch.storage.result import mean_recall

FORMAT = 1
NEEDED_SETTINGS = ("data", "algorithm", "model", "seed")
ROUNDING = 1e-6  # differences of an accuracy that mean nothing


@dataclass(frozen=True)
class LedgerCurve:
    """A metric over training; it may be NaN at some steps."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LedgerScores:
    """Scores of student or teacher on the test images; fractions in [0, 1]."""

    last: float
    median_last_20: float | None = None
    best_chosen_on_test: float | None = None
    interval: tuple[float, float]
    top5: float | None = None
    ece: float
    per_class: tuple[float | None, ...] = ()
    top5_at_best: float | None = None  # at the evaluation whose top-1 accuracy is the best

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean recall, where it differs from the accuracy since test classes are uneven."""
        balanced = mean_recall(self.per_class)
        differs = balanced is not None and abs(balanced - self.last) > ROUNDING
        return balanced if differs else None

    def by_protocol(self, measure: str) -> dict[str, float | None]:
        """Accuracy by any measure: last, median of the last evaluations, best chosen on test."""
        if measure == "balanced":
            return {"last": self.balanced_accuracy}
        if measure == "top5":
            return {"last": self.top5, "best": self.top5_at_best}
        return {"last": self.last, "median": self.median_last_20, "best": self.best_chosen_on_test}


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """What the ledger stores of a run: enough to judge it, repeat it and draw its curves."""

    format: int = FORMAT
    name: str
    date: str
    command: str
    commit: str | None  # None: unknown
    dirty: bool | None
    code: str | None  # hash of the code that decides the numbers
    fingerprint: str
    split: str | None
    steps: int
    seconds: float
    steps_per_second: float | None
    device: str
    versions: dict[str, str]
    notes: tuple[str, ...]
    config: JSON  # as in config.toml, possibly with settings that no longer exist
    classes: tuple[str, ...]
    scores: dict[str, LedgerScores]  # of student and teacher; empty without test images
    curves: dict[str, LedgerCurve]

    @property
    def data(self) -> str:
        """The name of a benchmark, or a path."""
        return str(self.config["data"]["name"])

    @property
    def labels(self) -> int | None:
        labels: int | None = self.config["data"].get("labels")
        return labels

    @property
    def algorithm(self) -> JSON:
        """The method's spec as a table: its name, then its fields."""
        algorithm: JSON = self.config["algorithm"]
        return algorithm

    @property
    def fold(self) -> int:
        """The seed, of the labels drawn and of the training."""
        return int(self.config["seed"])

    @property
    def teacher(self) -> LedgerScores | None:
        return self.scores.get("teacher")


def parse_entry(table: JSON) -> LedgerEntry:
    """An entry from its JSON table; `ValueError` says what is wrong with it."""
    if "format" not in table:
        raise WrongValue("format is missing")
    curves = table.get("curves")
    if not isinstance(curves, dict):
        raise WrongValue("curves is not a table")
    entry = from_json(LedgerEntry, table | {"curves": {}})
    check_settings(entry.config)
    parsed = {name: parse_curve(name, curve) for name, curve in curves.items()}
    return dataclasses.replace(entry, curves=parsed)


def check_settings(config: JSON) -> None:
    """What every reader of an entry relies on."""
    for name in NEEDED_SETTINGS:
        if name not in config:
            raise WrongValue(f"config.{name} is missing")
    for name in ("data", "algorithm"):
        if not isinstance(config[name], dict) or not config[name].get("name"):
            raise WrongValue(f"config.{name}.name is missing")
    if type(config["seed"]) is not int:
        raise WrongValue("config.seed is not an integer")


def parse_curve(name: str, curve: Any) -> LedgerCurve:
    if not isinstance(curve, list) or [type(part) for part in curve] != [list, list]:
        raise WrongValue(f"curves.{name} is not a list of steps and a list of values")
    steps, values = curve
    if len(steps) != len(values) or not all(type(part) in (int, float) for part in steps + values):
        raise WrongValue(f"curves.{name} does not have one number per step")
    return LedgerCurve(tuple(steps), tuple(values))


def entry_table(entry: LedgerEntry) -> JSON:
    """The JSON table of an entry; scores that were not measured are left out."""
    table = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    scores = {
        model: {k: v for k, v in dataclasses.asdict(each).items() if v is not None}
        for model, each in entry.scores.items()
    }
    curves = {name: [curve.steps, curve.values] for name, curve in entry.curves.items()}
    return table | {"scores": scores, "curves": curves}


def dump_entry(entry: LedgerEntry) -> str:
    """JSON with one fact or curve per line, so that a diff shows what changed."""
    return "{\n" + ",\n".join(dump_fields(entry_table(entry))) + "\n}\n"


def dump_fields(table: JSON) -> Iterator[str]:
    for name, value in table.items():
        if name in ("config", "curves", "scores"):
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            yield f' "{name}": {{\n{inner}\n }}'
        else:
            yield f' "{name}": {json.dumps(value)}'
