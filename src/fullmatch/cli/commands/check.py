"""`fullmatch check`: find problems in the pictures before time is spent on training."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullmatch.data.quality.check import DataCheck
    from fullmatch.experiment.planning import TrainingPlan


def check(data: str, *, minutes: float | None = None, out: Path | None = None) -> None:
    """Check pictures before training: read each one once, change nothing, report problems.

    Exits with 0 if training would start, with or without warnings, and with 2 if it would not.

    Parameters
    ----------
    data
        A folder with labeled/CLASS/* and unlabeled/*, a CSV with path,label, or an NPZ.
    minutes
        How long training may take, used for the plan. [default: 10]
    out
        Where to write all findings. [default: check.json in the current folder, unless that is
        inside the folder of pictures]
    """
    import shlex

    from fullmatch import data as sources
    from fullmatch.cli.check_text import format_check, plan_training, resolve_output
    from fullmatch.cli.terminal import console
    from fullmatch.errors import UserError

    if data in sources.DATASETS:
        raise UserError(
            f"check is for your own pictures, and {data} is a benchmark; "
            f"train on it with: fullmatch train {data}"
        )
    path = Path(data).expanduser()
    if path.suffix.lower() == ".csv" and not path.exists():
        raise UserError(f"no such file: {path}; check the path")
    output = resolve_output(out, path)
    result = _run_check(data)
    plan = plan_training(result, data, minutes) if result.can_train else None
    arguments = [data] if minutes is None else [data, "--minutes", f"{minutes:g}"]
    for line in format_check(result, shlex.join(arguments), plan):
        console.print(line, markup=False, soft_wrap=True)
    _write_findings(output, result, plan)
    if not result.can_train:
        raise SystemExit(2)


def _run_check(data: str) -> "DataCheck":
    """Check with a progress bar in a terminal."""
    from rich.progress import Progress

    from fullmatch import data as sources
    from fullmatch.cli.terminal import console
    from fullmatch.data.quality.check import check_pictures, check_source

    path = Path(data).expanduser()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def report_progress(total: int) -> None:
            bar.update(task, total=total, advance=1)

        if path.is_dir() or path.suffix.lower() == ".csv":
            return check_pictures(path, report_progress)
        return check_source(sources.load(data), report_progress)


def _write_findings(output: Path | None, result: "DataCheck", plan: "TrainingPlan | None") -> None:
    import json

    from fullmatch.cli.terminal import print_note
    from fullmatch.storage.atomic import write_text

    if output is None:
        print_note("Findings were not written: this is the folder of pictures; use --out FILE.")
        return
    content = result.to_json() | {"minutes": round(plan.seconds / 60, 1) if plan else None}
    write_text(output, json.dumps(content, indent=1) + "\n")
    print_note(f"All findings, file by file: {output}")
