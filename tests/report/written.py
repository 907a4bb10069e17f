"""Run folders written by hand, so that a test decides what is in them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from safetensors.numpy import save_file

ODD = ("<script>alert(1)</script>", '$x_1$ & "quoted"', "ähre 麦")


def write_run(
    path: Path,
    *,
    classes: tuple[str, ...] = ("cat", "dog", "fox"),
    finished: bool = True,
    test: bool = True,
    evaluated: bool = True,
    records: int = 5,
    algorithm: str = "fixmatch",
    **result: Any,
) -> Path:
    """A run of `records` log lines; every test image of the last class is taken for the first."""
    path.mkdir(parents=True)
    config = {
        "data": {"name": "pets", "labels": 6},
        "algorithm": {"name": algorithm, "threshold": 0.95},
        "training": {"steps": 10 * max(records, 1), "deterministic": False},
        "seed": 0,
    }
    (path / "config.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    with (path / "metrics.jsonl").open("w") as log:
        for number in range(1, records + 1):
            share = number / records
            line: dict[str, Any] = {"step": 10 * number, "loss": 2 - share, "selected": share}
            line |= {"k": 3.0, "negatives": 0.5, "seconds": share}
            if evaluated:
                line["evaluation"] = {who: {"top1": share} for who in ("student", "teacher")}
            log.write(json.dumps(line) + "\n")
    if not finished:
        return path
    found: dict[str, Any] = {"data": "pets", "labels": 6, "unlabeled": 20, "seconds": 3.0}
    found |= {"classes": list(classes), "notes": ["a <note>"], "versions": {"python": "3"}}
    (path / "split.json").write_text(json.dumps({"targets": [0, 0, 1, 1, 2, 2]}))
    if test:
        found["teacher"] = scores(path, len(classes)) | (
            {"median_last_20": 0.5} if evaluated else {}
        )
        if evaluated:
            found["teacher"]["best_chosen_on_test"] = 1.0
    (path / "result.json").write_text(json.dumps(found | result), encoding="utf-8")
    return path


def scores(path: Path, classes: int, each: int = 4) -> dict[str, Any]:
    labels = np.repeat(np.arange(classes), each)
    said = np.where(labels == classes - 1, 0, labels)
    sure = np.linspace(0.5, 0.99, len(labels))
    probabilities = np.tile(((1 - sure) / (classes - 1))[:, None], (1, classes))
    probabilities[np.arange(len(labels)), said] = sure
    saved = {"probabilities": probabilities.astype(np.float32), "labels": labels.astype(np.int64)}
    save_file(saved, path / "predictions.safetensors")
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (labels, said), 1)
    right = float((said == labels).mean())
    return {
        "last": right,
        "top1": right,
        "interval": [right - 0.1, right + 0.1],
        "ece": 0.2,
        "per_class": [1.0] * (classes - 1) + [0.0],
        "confusion": confusion.tolist(),
    }
