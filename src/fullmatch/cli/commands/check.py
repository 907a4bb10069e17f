"""`fullmatch check`: find problems in the pictures before time is spent on training."""

from pathlib import Path


def check(data: str, *, minutes: float | None = None, out: Path | None = None) -> None:
    """Check pictures before training: change nothing, report problems.

    Photos are compared by features of a pretrained network. Exits with 0 if training would start,
    with or without warnings, and with 2 if it would not.

    Parameters
    ----------
    data
        A folder with labeled/CLASS/* and unlabeled/*, a CSV with path,label, an NPZ, a Parquet
        or Arrow file, tar shards, or hf:PATH.
    minutes
        How long training may take, used for the plan. [default: 10]
    out
        Where to write all findings; a page with thumbnails is written beside it. [default:
        check.json in the current folder, unless that is inside the folder of pictures]
    """
    from fullmatch.api import checking
    from fullmatch.data.sources.places import data_folder
    from fullmatch.display.terminal import print_line, print_note

    output = checking.resolve_output(out, data_folder(data))
    report = checking.check(data, minutes=minutes)
    for line in report.lines:  # one by one: a name cannot begin another line
        print_line(line)
    if output is None:
        print_note("Findings were not written: this is the folder of pictures; use --out FILE.")
    else:
        page = report.write(output)
        print_note(f"All findings, file by file: {output}")
        print_note(f"The same with pictures: {page}")
    if not report.can_train:
        raise SystemExit(2)
