"""`fullmatch predict`: labels for picture files, as CSV."""

import io
import itertools
import sys
from pathlib import Path


def predict(
    run: Path,
    *pictures: str,
    csv: Path | None = None,
    unsure: float = 0.7,
    overwrite: bool = False,
) -> None:
    """Label pictures with a finished run's model, one CSV row for every file.

    Parameters
    ----------
    run
        A run folder.
    pictures
        Pictures, folders of them, or quoted patterns such as 'photos/**/*.jpg'.
    csv
        Where to write the rows; the file appears when all are there. [default: the terminal]
    unsure
        Confidence below which a row is flagged as unsure.
    overwrite
        Replace the CSV file if it exists.
    """
    from fullmatch.errors import UserError, many
    from fullmatch.inference.prediction import Predictor, picture_paths, write_csv
    from fullmatch.inference.trained_run import TrainedRun
    from fullmatch.storage.atomic import aside, told

    if not pictures:
        raise UserError("no pictures named; give pictures, folders or patterns after the run")
    if csv is not None and csv.exists() and not overwrite:
        raise UserError(f"{csv} exists already; name another file, or add --overwrite")

    own = csv.resolve() if csv else None
    # The CSV file may well lie in the folder.
    files = (path for path in picture_paths(pictures) if not same(path, own))
    predictor = Predictor(TrainedRun(run), unsure=unsure)
    rows = predictor.predictions(files)
    first = next(rows, None)
    if first is None:
        raise UserError(f"no files in {', '.join(pictures)}; give pictures or folders of them")
    rows = itertools.chain((first,), rows)
    if csv is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")  # file names may be any bytes
        flags = write_csv(rows, sys.stdout)
    else:
        with (
            told(csv),
            aside(csv) as place,
            place.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file,
        ):
            flags = write_csv(rows, file)
    counts = "".join(f", {n} {flag}" for flag, n in sorted(flags.items()) if flag)
    # Beside the rows, not among them.
    print(f"{many(flags.total(), 'picture')}{counts}.", file=sys.stderr)
    for note in predictor.notes:
        print(note, file=sys.stderr)


def same(path: str, other: Path | None) -> bool:
    # The names first: resolving takes a look at the disk.
    return other is not None and Path(path).name == other.name and Path(path).resolve() == other
