"""Run folders without any training: in today's format, and in that of fullmatch 0.1."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray
from safetensors.numpy import save_file

from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import (
    Accuracy,
    Estimate,
    FinalScores,
    PairedComparison,
    RunResult,
    Verdict,
)
from fullmatch.storage.run_folder import RunFolder

ODD = ("<script>alert(1)</script>", '$x_1$ & "quoted"', "ähre 麦")
PETS = ("cat", "dog", "fox")
PER_CLASS = 4  # test images


def write_run(
    path: Path,
    *,
    classes: tuple[str, ...] = PETS,
    finished: bool = True,
    test: bool = True,
    evaluated: bool = True,
    records: int = 5,
    algorithm: str = "fixmatch",
    config: dict[str, Any] | None = None,
    **result: Any,
) -> Path:
    """A run in today's format; every test image of the last class is predicted as the first.

    `config` replaces sections of config.toml, `result` replaces fields of the result.
    """
    folder = RunFolder(path)
    write_config(folder, algorithm, records, config or {})
    for record in make_records(records, evaluated):
        folder.append_record(record)
    if not finished:
        return path
    folder.split.write_text(json.dumps({"targets": [0, 0, 1, 1, 2, 2]}))
    facts: dict[str, Any] = make_facts(classes, algorithm)
    facts |= {"split_hash": "5" * 64, "config_hash": "c" * 16}
    if test:
        chosen: dict[str, Any] = (
            {"median_last_20": 0.5, "best_chosen_on_test": 1.0} if evaluated else {}
        )
        facts["teacher"] = FinalScores(**write_predictions(folder, len(classes)), **chosen)
    folder.write_result(RunResult(**(facts | result)))
    return path


def write_old_run(path: Path, *, classes: tuple[str, ...] = PETS, **result: Any) -> Path:
    """The same run in the format of fullmatch 0.1; `result` replaces keys of result.json."""
    folder = RunFolder(path)
    write_config(folder, "fixmatch", 5, {})
    for record in make_records(5, evaluated=True):
        folder.append_record(record)
    folder.split.write_text(json.dumps({"targets": [0, 0, 1, 1, 2, 2]}))
    facts: dict[str, Any] = make_facts(classes, "fixmatch")
    facts |= {"split": "5" * 64, "config": "c" * 16}
    scores = write_predictions(folder, len(classes))
    scores |= {"last": scores["top1"], "median_last_20": 0.5, "best_chosen_on_test": 1.0}
    facts["teacher"] = scores
    folder.result.write_text(json.dumps(facts | result), encoding="utf-8")
    return path


def write_config(folder: RunFolder, algorithm: str, records: int, sections: dict[str, Any]) -> None:
    folder.path.mkdir(parents=True)
    table = {
        "data": {"name": "pets", "labels": 6},
        "algorithm": {"name": algorithm, "threshold": 0.95},
        "training": {"steps": 10 * max(records, 1), "deterministic": False},
        "seed": 0,
    }
    folder.config.write_text(tomli_w.dumps(table | sections), encoding="utf-8")


def make_records(count: int, evaluated: bool) -> list[LogRecord]:
    """Records in which the fraction of selected images and the accuracy rise to 1."""
    records = []
    for number in range(1, count + 1):
        part = number / count
        metrics = {"loss": 2 - part, "selected": part, "k": 3.0, "negatives": 0.5}
        models = ("student", "teacher") if evaluated else ()
        evaluation = {model: {"top1": part} for model in models}
        records.append(LogRecord(10 * number, metrics, part, evaluation))
    return records


def make_facts(classes: tuple[str, ...], algorithm: str) -> dict[str, Any]:
    """The fields that both formats share."""
    return {
        "algorithm": {"name": algorithm},
        "data": "pets",
        "classes": classes,
        "labels": 6,
        "unlabeled": 20,
        "seed": 0,
        "steps": 50,
        "seconds": 3.0,
        "device": "CPU (1 thread)",
        "versions": {"python": "3"},
        "notes": ("a <note>",),
    }


def write_predictions(folder: RunFolder, classes: int) -> dict[str, Any]:
    """Predictions of growing confidence; returns the scores they give."""
    labels = np.repeat(np.arange(classes), PER_CLASS)
    predicted: NDArray[np.int64] = np.where(labels == classes - 1, 0, labels)
    confidence = np.linspace(0.5, 0.99, len(labels))
    probabilities = np.tile(((1 - confidence) / (classes - 1))[:, None], (1, classes))
    probabilities[np.arange(len(labels)), predicted] = confidence
    tensors: dict[str, NDArray[Any]] = {
        "probabilities": probabilities.astype(np.float32),
        "labels": labels,
    }
    save_file(tensors, folder.predictions)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (labels, predicted), 1)
    accuracy = float((predicted == labels).mean())
    return {
        "top1": accuracy,
        "interval": (max(accuracy - 0.1, 0.0), min(accuracy + 0.1, 1.0)),
        "ece": 0.2,
        "per_class": (*[1.0] * (classes - 1), 0.0),
        "confusion": tuple(map(tuple, confusion.tolist())),
    }


def make_comparison(
    gain: float = 0.1,
    interval: tuple[float, float] = (0.05, 0.15),
    verdict: Verdict = Verdict.HELPED,
    start: str | None = None,
) -> PairedComparison:
    return PairedComparison(
        gain=gain,
        interval=interval,
        better=3,
        worse=1,
        p_value=0.5,
        verdict=verdict,
        images=12,
        start=start,
    )


def make_estimate(**fields: Any) -> Estimate:
    """An estimate on the classes of `PETS`; `fields` replace some of it."""
    facts: dict[str, Any] = {
        "accuracy": 0.8,
        "interval": (0.7, 0.9),
        "held_out": 6,
        "labels": 6,
        "unlabeled": 20,
        "folds": 5,
        "repeats": 2,
        "steps": 50,
        "baseline": Accuracy(accuracy=0.7, interval=(0.6, 0.8)),
        "gain": make_comparison(),
        "per_class": dict.fromkeys(PETS, 0.8),
    }
    return Estimate(**(facts | fields))
