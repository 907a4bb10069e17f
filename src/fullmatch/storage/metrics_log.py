"""metrics.jsonl: one line per logged step."""

import json
import math
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from fullmatch.files.reading import parse_json, read_bounded_text
from fullmatch.storage.json_files import LARGEST, WrongValue


@dataclass(frozen=True)
class LogRecord:
    """What was logged at a step; metrics may be NaN."""

    step: int
    metrics: dict[str, float]
    seconds: float = 0.0
    # Of student and teacher: top1, top5 and ece, where test images are looked at in training.
    evaluation: dict[str, dict[str, float]] = field(default_factory=dict)

    def to_table(self) -> dict[str, Any]:
        table: dict[str, Any] = {"step": self.step, **self.metrics}
        if self.evaluation:
            table["evaluation"] = self.evaluation
        return table | {"seconds": self.seconds}

    def to_line(self) -> str:
        return json.dumps(self.to_table())


def parse_record(line: str) -> LogRecord:
    """`ValueError` says what is wrong with the line."""
    table = parse_json(line)
    if not isinstance(table, dict):
        raise WrongValue("a line is not a table")
    step = table.pop("step", None)
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < LARGEST:
        raise WrongValue("a line has no step")
    seconds = number(table.pop("seconds", 0.0), "seconds")
    scores = table.pop("evaluation", {})
    if not isinstance(scores, dict) or not all(isinstance(each, dict) for each in scores.values()):
        raise WrongValue("evaluation is not a table")
    evaluation = {
        model: {name: number(value, f"{model}.{name}") for name, value in each.items()}
        for model, each in scores.items()
    }
    if not all(0 <= each.get("top1", -1) <= 1 for each in evaluation.values()):
        raise WrongValue("an evaluation has no top1")
    if not 0 <= seconds < math.inf:
        raise WrongValue("seconds is not a time")
    metrics = {name: number(value, name) for name, value in table.items()}
    return LogRecord(step, metrics, seconds, evaluation)


def number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValue(f"{name} is not a number")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise WrongValue(f"{name} is too large")
    return value


def read_records(path: Path) -> list[LogRecord]:
    """All records of a log; the last line may be half written by a run that was killed."""
    if not path.exists():
        return []
    *lines, last = read_bounded_text(path).split("\n")
    records = [parse_record(line) for line in lines if line]
    with suppress(ValueError):
        records += [parse_record(last)] if last else []
    if any(earlier.step > later.step for earlier, later in pairwise(records)):
        raise WrongValue("its steps are not in order")
    return records
