"""scores.safetensors: recalls and confusions of many classes, which would make result.json large.

With 1,000 classes two confusion matrices are 16 megabytes of JSON, nearly all of it zeros; here
only the other entries are stored. Up to `JSON_CLASSES` classes everything stays in result.json,
which people read. Readers see no difference: both forms give the same `RunResult`.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fullmatch.storage.arrays import read_arrays, write_arrays
from fullmatch.storage.json_files import JSON, WrongValue, read_json, to_json, write_json
from fullmatch.storage.result import FORMAT, RunResult

JSON_CLASSES = 100
SPLIT_FORMAT = 3  # of a result.json whose tensors are beside it
TENSORS_FORMAT = 1
MODELS = ("student", "teacher")


def write_result(path: Path, tensors: Path, result: RunResult) -> None:
    """Write result.json, and before it the tensors that belong to it."""
    table: JSON = to_json(result)
    if len(result.classes) > JSON_CLASSES:
        arrays = take_arrays(table)
        table["format"] = SPLIT_FORMAT
        write_arrays(tensors, arrays, {"format": TENSORS_FORMAT})
    write_json(path, table)


def take_arrays(table: JSON) -> dict[str, NDArray[Any]]:
    """Move recalls and confusions out of a result's table; a recall that is None is NaN."""
    arrays: dict[str, NDArray[Any]] = {}
    for model in MODELS:
        if (scores := table.get(model)) is not None:
            recalls = [np.nan if recall is None else recall for recall in scores.pop("per_class")]
            arrays[f"{model}.per_class"] = np.array(recalls, dtype=np.float64)
            confusion = np.array(scores.pop("confusion"), dtype=np.int64)
            rows, columns = confusion.nonzero()
            entries = np.stack([rows, columns, confusion[rows, columns]], axis=1)
            arrays[f"{model}.confusion"] = entries
    return arrays


def fill_confusion(entries: NDArray[np.int64], count: int) -> list[list[int]]:
    """The matrix of entries (true class, predicted class, images)."""
    if entries.ndim != 2 or entries.shape[1] != 3 or entries.dtype != np.int64:
        raise WrongValue("confusion is not a list of classes and counts")
    if (entries < 0).any() or (entries[:, :2] >= count).any():
        raise WrongValue(f"confusion does not fit {count} classes")
    confusion = np.zeros((count, count), dtype=np.int64)
    confusion[entries[:, 0], entries[:, 1]] = entries[:, 2]
    matrix: list[list[int]] = confusion.tolist()
    return matrix


def read_result_table(path: Path, tensors: Path) -> JSON:
    """The whole table of a result.json; `ValueError` says what is wrong with it."""
    table = read_json(path)
    if table.get("format") != SPLIT_FORMAT:
        return table
    if not tensors.exists():
        raise WrongValue(f"{tensors.name} is missing")
    arrays, _ = read_arrays(tensors, TENSORS_FORMAT)
    classes = table.get("classes")
    count = len(classes) if isinstance(classes, list) else 0
    for model in MODELS:
        if isinstance(scores := table.get(model), dict):
            recalls: list[float] = arrays[f"{model}.per_class"].tolist()
            scores["per_class"] = [None if np.isnan(recall) else recall for recall in recalls]
            scores["confusion"] = fill_confusion(arrays[f"{model}.confusion"], count)
    return table | {"format": FORMAT}
