"""From a finished run folder to an entry of the ledger."""

import itertools
import math
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerCurve, LedgerEntry, LedgerScores
from fullmatch.reproduce.provenance import UNKNOWN_CODE, CodeVersion
from fullmatch.storage.json_files import JSON
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import RunResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_settings

POINTS = 200  # per curve, at most
DIGITS = 5  # significant digits of a curve's values


def make_entry(
    folder: Path, code: CodeVersion = UNKNOWN_CODE, notes: Sequence[str] = ()
) -> LedgerEntry:
    """The ledger's entry of a finished run; `notes` are added to those of the run."""
    run = RunFolder.existing(folder)
    result, records = run.read_result(), run.read_records()
    config = portable_settings(run)
    return LedgerEntry(
        name=folder.resolve().name,
        date=finish_date(run),
        command=provenance.command(config),
        commit=code.commit,
        dirty=code.dirty,
        code=code.hash,
        fingerprint=result.config_hash,
        split=result.split_hash,
        steps=result.steps,
        seconds=result.seconds,
        steps_per_second=median_speed(records),
        device=result.device,
        versions=result.versions,
        notes=(*result.notes, *notes),
        config=config,
        classes=result.classes,
        scores=collect_scores(result, records),
        curves={name: thin_curve(curve) for name, curve in collect_curves(records).items()},
    )


def portable_settings(run: RunFolder) -> JSON:
    """The settings without the place where one machine keeps its data."""
    table = read_settings(run).table
    return table | {"data": {k: v for k, v in table["data"].items() if k != "root"}}


def finish_date(run: RunFolder) -> str:
    return datetime.fromtimestamp(run.result.stat().st_mtime, UTC).strftime("%Y-%m-%d")


def collect_scores(result: RunResult, records: Sequence[LogRecord]) -> dict[str, LedgerScores]:
    """Final scores of student and teacher, where there are test images."""
    models = {"student": result.student, "teacher": result.teacher}
    return {
        model: LedgerScores(
            last=scores.top1,
            median_last_20=scores.median_last_20,
            best_chosen_on_test=scores.best_chosen_on_test,
            interval=scores.interval,
            top5=scores.top5,
            ece=scores.ece,
            per_class=scores.per_class,
            top5_at_best=top5_at_best(records, model),
        )
        for model, scores in models.items()
        if scores is not None
    }


def top5_at_best(records: Sequence[LogRecord], model: str) -> float | None:
    """Top-5 accuracy of the evaluation whose top-1 accuracy is the best."""
    evaluations = [record.evaluation[model] for record in records if model in record.evaluation]
    if not evaluations:
        return None
    return max(evaluations, key=lambda scores: scores["top1"]).get("top5")


def collect_curves(records: Sequence[LogRecord]) -> dict[str, LedgerCurve]:
    """Every metric of a run over its steps; evaluations by name, such as teacher.top1."""
    points: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        logged = {**record.metrics, "seconds": record.seconds}
        for name, value in (logged | provenance.flatten(record.evaluation)).items():
            points.setdefault(name, []).append((record.step, value))
    return {name: LedgerCurve(*zip(*each, strict=True)) for name, each in points.items()}


def thin_curve(curve: LedgerCurve, points: int = POINTS) -> LedgerCurve:
    """At most `points` points, evenly spaced, including the first and the last."""
    count = len(curve.steps)
    index = list(range(count))
    if count > points:
        index = [round(i * (count - 1) / (points - 1)) for i in range(points)]
    return LedgerCurve(
        tuple(curve.steps[i] for i in index), tuple(round_value(curve.values[i]) for i in index)
    )


def round_value(value: float) -> float:
    if isinstance(value, int) or not math.isfinite(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def median_speed(records: Sequence[LogRecord]) -> float | None:
    """Steps per second: the median between two lines of the log, which leaves start-up out."""
    spans = [(b.step - a.step, b.seconds - a.seconds) for a, b in itertools.pairwise(records)]
    speeds = [steps / seconds for steps, seconds in spans if seconds > 0]
    return round_value(statistics.median(speeds)) if speeds else None
