"""The page docs/reliability.md: what is promised, which test holds it, and measured figures.

    python -m benchmarks.reliability

Figures are lines of docs/results/reliability.jsonl, which the other scripts append to.
"""

import datetime
import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from benchmarks.promises import SECTIONS, Promise

Figures = dict[str, object]  # a line of the file

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "results" / "reliability.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
INTRODUCTION = """# Reliability

What a run promises when files are damaged, processes are killed and disks are full. Each promise is
held by a test. `benchmarks/reliability.py` writes this page.
"""


def record_figures(kind: str, **figures: object) -> None:
    """Append a measurement, with what it was made by."""
    line = {
        "kind": kind,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": read_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        **figures,
    }
    with FIGURES.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def read_figures(path: Path = FIGURES) -> list[Figures]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def render_page() -> str:
    """The page, from the promises and the figures."""
    figures = read_figures()
    lines = [INTRODUCTION]
    for heading, promises in SECTIONS.items():
        lines += [f"## {heading}", "", "| case | promise | test | figure |"]
        lines += ["| --- | --- | --- | --- |"]
        lines += [render_row(promise, figures) for promise in promises]
        lines.append("")
    lines += ["## Figures", "", "| script | date | commit | figures |", "| --- | --- | --- | --- |"]
    for line in figures:
        kind, date, commit = (line.pop(key) for key in ("kind", "date", "commit"))
        text = ", ".join(f"{name} {value}" for name, value in line.items())
        lines.append(f"| `benchmarks/{kind}.py` | {date} | {commit} | {text} |")
    return "\n".join(lines) + "\n"


def render_row(promise: Promise, figures: Sequence[Figures]) -> str:
    test = f"tests/{promise.test}" if "::" in promise.test else promise.test
    figure = summarize(promise.script, figures) if promise.script else ""
    return f"| {promise.case} | {promise.outcome} | `{test}` | {figure} |"


def summarize(script: str, figures: Sequence[Figures]) -> str:
    """What all measurements of a script have shown together."""

    def total(name: str) -> int:
        counts = [line.get(name, 0) for line in figures if line["kind"] == script]
        return sum(count for count in counts if isinstance(count, int))

    if script == "kills":
        return f"{total('bit_equal'):,} of {total('kills'):,} kills bit-equal"
    if script == "soak":
        seconds = total("seconds_alone") + total("seconds_troubled")
        return f"{total('bit_equal')} of {count_lines(script, figures)} bit-equal, {seconds:,} s"
    bad = total("traceback") + total("hang") + total("executed")
    return f"{total('cases'):,} damaged files, {bad} tracebacks, hangs or code run"


def count_lines(script: str, figures: Sequence[Figures]) -> int:
    return sum(line["kind"] == script for line in figures)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
