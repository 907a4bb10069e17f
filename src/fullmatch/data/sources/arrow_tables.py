"""Read Arrow and Parquet files, and data sets of Hugging Face `datasets`, local or from the hub.

The pictures are in a column called `image`, or in the only column of encoded pictures. Labels are
in a column called `label`, or in the only one of type `ClassLabel`. A column called `split` says
what each row is for.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fullmatch.data.sources.places import HUB, TABLES, local_path
from fullmatch.data.sources.table_parts import SPLITS, Codes, TablePart
from fullmatch.data.sources.tables import UNLABELED
from fullmatch.data.stores.arrow import ArrowPictures, explained, open_table
from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, read_bounded

IMAGE, LABEL, SPLIT = "image", "label", "split"


def read_hub(name: str) -> list[TablePart]:
    """The data set `hf:NAME`: a folder or file on this machine, or else a name on the hub."""
    path = local_path(name)
    files = _download(name.removeprefix(HUB)) if path is None else _list_tables(path)
    return [part for file, split in files for part in read_table(file, split)]


def read_table(path: Path, split: str = "") -> list[TablePart]:
    """The rows of one file, by split; the file's own split counts where it has no such column."""
    table = open_table(path)
    features = _read_features(table)
    pictures = ArrowPictures(path, _find_picture_column(path, table), table)
    if len(pictures) and pictures.values.null_count == len(pictures):
        raise UserError(
            f"{path} has no pictures in the column {pictures.column!r}, only empty cells or paths; "
            "write the pictures themselves into it, such as the bytes of PNG files"
        )
    column = _find_label_column(path, table, features)
    if column is None:
        part = TablePart(split, pictures, np.full(len(pictures), -1), ())
    else:
        classes = _read_class_names(path, features.get(column, {}))
        labels, names = _read_labels(path, table[column], column, classes)
        part = TablePart(split, pictures, labels, names, ordered=classes is not None)
    return [part] if SPLIT not in table.column_names else list(_divide(path, part, table[SPLIT]))


def _list_tables(path: Path) -> list[tuple[Path, str]]:
    """The files of a data set on this machine, each with the name of its split."""
    if not path.exists():
        raise UserError(f"no such folder or file: {path}; check the path")
    if path.is_file():
        return [(path, split_of(path))]
    if (path / "dataset_dict.json").is_file():
        splits = _read_names(path / "dataset_dict.json", lambda content: content["splits"])
        return [(file, split) for split in splits for file in _saved_files(path / split)]
    if (path / "state.json").is_file():
        return [(file, "") for file in _saved_files(path)]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in TABLES)
    if not files:
        raise UserError(
            f"{path} has no Arrow or Parquet files; give a folder that Dataset.save_to_disk wrote"
        )
    return [(file, split_of(file, path)) for file in files]


def split_of(path: Path, folder: Path | None = None) -> str:
    """The split that a file is named after, such as train-00000-of-00002.parquet, or its folder."""
    names = [path.name]
    if folder is not None:
        names += reversed(path.relative_to(folder).parts[:-1])
    for name in names:
        for separator in "-_.":
            if name.partition(separator)[0].lower() in SPLITS:
                return name.partition(separator)[0]
    return ""


def _saved_files(folder: Path) -> list[Path]:
    """The files that `Dataset.save_to_disk` wrote."""
    names = _read_names(
        folder / "state.json",
        lambda content: [entry["filename"] for entry in content["_data_files"]],
    )
    return [folder / name for name in names]


def _read_names(path: Path, choose: Callable[[Any], Sequence[str]]) -> list[str]:
    """Names of files or folders beside this file, never of some that lie elsewhere."""
    try:
        names = choose(parse_json(read_bounded(path)))
        return [Path(name).name for name in names]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the folder") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged; save the data set again") from None


def _download(name: str) -> list[tuple[Path, str]]:
    """The files of `NAME` or `NAME:CONFIG` on the hub, which `datasets` keeps on this machine."""
    try:
        import datasets
    except ImportError:
        raise UserError(
            "Hugging Face data sets need an extra package; run pip install 'fullmatch[hub]'"
        ) from None
    repository, _, config = name.partition(":")
    try:
        loaded = datasets.load_dataset(repository, config or None)
    except Exception as error:  # Networks, hubs and builders raise anything.
        reason = (" ".join(str(error).split()) or type(error).__name__)[:200]
        raise UserError(
            f"no folder {name}, and the hub has no such data set or cannot be reached ({reason}); "
            "check the name, or give the path of a local copy"
        ) from None
    return [
        (Path(file["filename"]), split)
        for split, dataset in loaded.items()
        for file in dataset.cache_files
    ]


def _read_features(table: Any) -> dict[str, dict[str, Any]]:
    """The types that `datasets` noted in the file, by column; nothing in files of others."""
    try:
        note = parse_json((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = note["info"]["features"].items()
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
    return {name: entry for name, entry in features if isinstance(entry, dict)}


def _read_class_names(path: Path, feature: dict[str, Any]) -> list[str] | None:
    names = feature.get("names")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(
            f"{path} is damaged (its class names are not a list of names); write it again"
        )
    return names


def _find_picture_column(path: Path, table: Any) -> str:
    columns: list[str] = [field.name for field in table.schema if _holds_pictures(field.type)]
    if IMAGE in columns:
        return IMAGE
    if len(columns) != 1:
        present = ", ".join(f"{field.name} ({field.type})" for field in table.schema)[:300]
        raise UserError(
            f"{path} has {'no' if not columns else 'more than one'} column of encoded pictures "
            f"(its columns: {present or 'none'}); write them as bytes, such as those of PNG files, "
            f"into a column called {IMAGE}"
        )
    return columns[0]


def _holds_pictures(kind: Any) -> bool:
    from pyarrow import types

    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        kind = kind.field("bytes").type
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _find_label_column(path: Path, table: Any, features: dict[str, dict[str, Any]]) -> str | None:
    if LABEL in table.column_names:
        return LABEL
    typed = [name for name, entry in features.items() if entry.get("_type") == "ClassLabel"]
    if len(typed) > 1:
        raise UserError(
            f"{path} has the labels {', '.join(typed)}; rename the column to use to {LABEL}"
        )
    return typed[0] if typed else None


def _read_labels(
    path: Path, column: Any, name: str, classes: list[str] | None
) -> tuple[Codes, tuple[str, ...]]:
    """The label of each row as a position in the names, or -1."""
    with explained(path):
        encoded = column.combine_chunks().dictionary_encode()
        rows = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        values = encoded.dictionary.to_pylist()
    names = list(classes or ())
    codes = [-1] * (len(values) + 1)  # the last one is for rows without a value
    for number, value in enumerate(values):
        label = parse_label(value, classes)
        if label is None:
            row = int((rows == number).argmax())
            expected = f"0 to {len(classes) - 1}" if classes else "0 or more, or a name"
            raise UserError(
                f"{path}, row {row}: {name} is {str(value)[:80]!r}, expected {expected}, or -1 "
                "for unlabeled"
            )
        if label and label not in names:
            names.append(label)
        codes[number] = names.index(label) if label else -1
    return np.array(codes)[rows], tuple(names)


def parse_label(value: object, classes: list[str] | None = None) -> str | None:
    """The class that a cell names, '' for unlabeled, None if it is not a label."""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    if isinstance(value, str):
        text = value.strip()
        return "" if text.lower() in UNLABELED else text
    if isinstance(value, bool):
        return str(value)
    if not isinstance(value, int) or value < -1:
        return "" if value is None else None
    if value == -1:
        return ""
    if classes is None:
        return str(value)
    return classes[value] if value < len(classes) else None


def _divide(path: Path, part: TablePart, column: Any) -> Iterator[TablePart]:
    """The rows of each split that the column names; an empty cell means train."""
    values = [str(value or "").strip() for value in column.to_pylist()]
    splits = np.array(values)
    for split in dict.fromkeys(values):
        if split.lower() not in SPLITS:
            row = int((splits == split).argmax())
            raise UserError(
                f"{path}, row {row}: split is {split!r}; write train, unlabeled, test or validation"
            )
        yield part.select((splits == split).nonzero()[0], split)
