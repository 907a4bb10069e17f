"""`fullmatch check`: what is wrong with the pictures, before any time is spent on training."""

from pathlib import Path


def check(data: str, *, minutes: float | None = None, out: Path | None = None) -> None:
    """Look at pictures before training: read all once, change nothing, say what will happen.

    Exits with 0 when training would start, warnings or not, and with 2 when it would refuse.

    Parameters
    ----------
    data
        A folder with labeled/CLASS/* and unlabeled/*, a CSV with path,label, or an NPZ.
    minutes
        How long training may take; the plan is made for it. [default: 10]
    out
        Where to write all findings. [default: check.json in the current folder, unless that lies
        among the pictures]
    """
    import json
    import shlex

    from rich.progress import Progress

    from fullmatch import data as sources
    from fullmatch.cli.check_text import planned, sentences, writable
    from fullmatch.cli.terminal import console, say
    from fullmatch.data.quality.check import examine, examine_source
    from fullmatch.errors import UserError
    from fullmatch.storage.atomic import write

    if data in sources.DATASETS:
        raise UserError(
            f"check looks at your own pictures, and {data} is a benchmark: fullmatch train {data}"
        )
    place = Path(data).expanduser()
    files = place.is_dir() or place.suffix.lower() == ".csv"
    if files and not place.exists():
        raise UserError(f"no such folder or file: {place}; check the path")
    target = writable(out, place)
    if target is not None and not target.parent.is_dir():
        raise UserError(f"cannot write {target}: there is no folder {target.parent}")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def told(total: int) -> None:
            bar.update(task, total=total, advance=1)

        found = examine(place, told) if files else examine_source(sources.load(data), told)
    plan = planned(found, data, minutes) if found.works else None
    words = [data] if minutes is None else [data, "--minutes", f"{minutes:g}"]
    for line in sentences(found, shlex.join(words), plan):
        console.print(line, markup=False, soft_wrap=True)
    if target is None:
        say("Findings not written, since this folder holds the pictures: name a file with --out.")
    else:
        facts = found.as_dict() | {"minutes": round(plan.seconds / 60, 1) if plan else None}
        write(target, json.dumps(facts, indent=1) + "\n")
        say(f"All findings, file by file: {target}")
    if not found.works:
        raise SystemExit(2)
