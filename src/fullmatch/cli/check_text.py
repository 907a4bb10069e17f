"""The words of a check: what there is, what is wrong with it, and how long training will take."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fullmatch.data.quality.check import Check
from fullmatch.errors import UserError
from fullmatch.experiment.planning import Plan, plan, stand_in

NAMED = 3  # files that are named on the screen; the rest are in the file


def planned(found: Check, name: str, minutes: float | None = None) -> Plan:
    """What training would choose; a few steps are timed."""
    source = stand_in(
        found.classes,
        unlabeled=found.unlabeled,
        test=sum(found.test.values()),
        side=found.side,
        channels=found.channels,
    )
    return plan(source, name, minutes=minutes)


def sentences(found: Check, name: str, plan: Plan | None) -> Iterator[str]:
    labels, kinds = sum(found.classes.values()), len(found.classes)
    yield f"labeled    {labels:,} pictures of {kinds} classes: {counted(found.classes)}"
    yield f"unlabeled  {found.unlabeled:,} pictures"
    if found.test:
        tests = sum(found.test.values())
        yield f"test       {tests:,} pictures, shown to the model once, after training"
    elif max(found.classes.values(), default=0) > 1:
        yield "test       none: accuracy is estimated on labeled pictures held out in turn"
    else:
        yield "test       none, and no class has two labels: accuracy cannot be estimated"
    if found.sizes:
        (w, h), (width, height) = found.sizes["smallest"], found.sizes["largest"]
        kind = "grey" if found.channels == 1 else "colour"
        yield f"pictures   {w}x{h} to {width}x{height}, {kind}"
    for remark in found.remarks:
        yield f"{'✗' if remark.blocks else '!'} {remark.sentence()}"
        for file in remark.files[:NAMED]:
            yield f"    {file}"
        if len(remark.files) > NAMED:
            yield f"    and {len(remark.files) - NAMED:,} more"
    if plan is None:
        yield "Not ready: mend what is marked ✗, then check again. Your files were not changed."
        return
    yield from (f"- {note}" for note in plan.notes)
    yield f"Ready: fullmatch train {name}   (about {duration(plan.seconds)} here, an estimate)"


def counted(classes: Mapping[str, int]) -> str:
    """All classes with their counts, or the extremes of many."""
    if len(classes) <= 10:
        return ", ".join(f"{name} {count}" for name, count in classes.items()) or "-"
    few, many = min(classes, key=lambda n: classes[n]), max(classes, key=lambda n: classes[n])
    return f"fewest {classes[few]} ({few}), most {classes[many]} ({many})"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds / 10)) * 10} seconds"
    return f"{round(seconds / 60)} minutes"


def writable(out: Path | None, pictures: Path) -> Path | None:
    """Where findings go; never among the pictures. None: nowhere, unless a place is named."""
    home = (pictures if pictures.is_dir() else pictures.parent).resolve()
    target = (out or Path("check.json")).resolve()
    inside = pictures.is_dir() and target.is_relative_to(home)
    if inside and out is not None:
        raise UserError(f"{out} lies among your pictures, which are left alone; name another --out")
    if not inside and target.exists() and not is_check(target):
        raise UserError(
            f"{out or target.name} exists and is no earlier check, so it is left alone; "
            "name another --out"
        )
    return None if inside else out or Path("check.json")


def is_check(path: Path) -> bool:
    """Whether a file is one that `check` wrote, which a new one may replace."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "minutes" in found
