"""Measurements of the benchmarks: lines of a file, and cells of a table."""

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from fullmatch.config import ExperimentConfig
from fullmatch.experiment.start import resume, start
from fullmatch.storage.json_files import from_json, to_json
from fullmatch.storage.result import RunResult
from fullmatch.storage.run_folder import RunFolder

T = TypeVar("T")


def read_measurements(kind: type[T], path: Path) -> list[T]:
    """All lines of a file, as dataclasses of this kind; none where there is no file."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [from_json(kind, json.loads(line)) for line in lines]


def append_measurement(path: Path, measurement: object) -> None:
    """Write a dataclass as a line, without the fields that are None."""
    table = {key: value for key, value in to_json(measurement).items() if value is not None}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(table) + "\n")


def train_to_end(config: ExperimentConfig, folder: RunFolder) -> tuple[RunResult, float]:
    """The result and seconds of a run, which may continue where an earlier process stopped."""
    started = time.perf_counter()
    if not folder.finished:
        run = resume(folder) if folder.started else start(config, folder)
        for _ in run.records():
            pass
    result = folder.read_result()
    return result, round(max(result.seconds, time.perf_counter() - started), 1)


def join_cells(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def format_spread(fractions: Sequence[float | None], sign: str = "") -> str:
    """Mean and standard deviation in percent; '-' where there is no such number."""
    percents = [100 * fraction for fraction in fractions if fraction is not None]
    if not percents:
        return "-"
    deviation = f" ± {statistics.stdev(percents):.1f}" if len(percents) > 1 else ""
    return f"{statistics.mean(percents):{sign}.1f}{deviation}"


def format_interval(value: float, interval: tuple[float, float], sign: str = "") -> str:
    """A fraction and its 95 % interval in percent."""
    low, high = (f"{100 * bound:{sign}.1f}" for bound in interval)
    return f"{100 * value:{sign}.1f} ({low} to {high})"
