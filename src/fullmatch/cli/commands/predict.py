"""`fullmatch predict`: labels for picture files, as CSV."""

import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError, escape_controls, pluralize

if TYPE_CHECKING:
    from fullmatch.inference.prediction import Flag, Item, Prediction


def predict(
    run: Path,
    *pictures: str,
    csv: Path | None = None,
    unsure: float = 0.7,
    overwrite: bool = False,
) -> None:
    """Label pictures with a finished run's model, one CSV row per file.

    Parameters
    ----------
    run
        A run folder, or a model on the hub as hf:user/name.
    pictures
        Pictures, folders of them, quoted patterns such as 'photos/**/*.jpg', Parquet or Arrow
        files, tar shards, or hf:PATH.
    csv
        The file to write; it appears when all rows are complete. [default: the terminal]
    unsure
        Flag predictions with a confidence below this as unsure.
    overwrite
        Replace the CSV file if it exists.
    """
    from fullmatch.api.finished_run import load
    from fullmatch.cli.changes import noting_changes
    from fullmatch.inference.prediction import list_items

    if not pictures:
        raise UserError("no pictures given; name pictures, folders or patterns after the run")
    if csv is not None and csv.exists() and not overwrite:
        raise UserError(f"{csv} exists already; name another file, or add --overwrite")
    # The CSV file may be in a folder of pictures.
    items = (item for item in list_items(pictures) if csv is None or not is_same(item, csv))
    with noting_changes(run):
        predictor = load(run).predictor(unsure)
        predictions = predictor.predict(items)
        first = next(predictions, None)
    if first is None:
        raise UserError(f"no files in {', '.join(pictures)}; give pictures or folders of them")
    predictions = itertools.chain((first,), predictions)
    flags = print_rows(predictions) if csv is None else write_rows(predictions, csv)
    # To stderr, so that the rows can be piped.
    print(summarize(flags), file=sys.stderr)
    for note in predictor.notes:
        print(escape_controls(note), file=sys.stderr)


def print_rows(predictions: "Iterator[Prediction]") -> "Counter[Flag]":
    from fullmatch.inference.prediction import write_csv

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # file names may be any bytes
    return write_csv(predictions, sys.stdout)


def write_rows(predictions: "Iterator[Prediction]", path: Path) -> "Counter[Flag]":
    from fullmatch.inference.prediction import write_csv
    from fullmatch.storage.atomic import explained_errors, replacing_chosen

    with (
        explained_errors(path),
        replacing_chosen(path) as place,
        place.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file,
    ):
        return write_csv(predictions, file)


def summarize(flags: "Counter[Flag]") -> str:
    """Summarize the flags, as in '12 pictures, 3 unsure'."""
    counts = "".join(f", {count} {flag}" for flag, count in sorted(flags.items()) if flag)
    return f"{pluralize(flags.total(), 'picture')}{counts}."


def is_same(path: "Item", other: Path) -> bool:
    # Names are compared first, since resolving a path reads the disk.
    return (
        isinstance(path, str)
        and Path(path).name == other.name
        and Path(path).resolve() == other.resolve()
    )
