"""The page docs/reliability.md: what is promised, which test holds it, and measured figures.

    python benchmarks/reliability.py

Figures are lines of docs/results/reliability.jsonl, which the other scripts append to.
"""

import datetime
import json
import platform
import subprocess
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "results" / "reliability.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
INTRODUCTION = """# Reliability

What a run promises when files are damaged, processes are killed and disks are full. Each promise is
held by a test. `benchmarks/reliability.py` writes this page.
"""
# Case, promise, and the test that holds it.
PROMISES = (
    ("killed at any moment", "resumes to the same result, bit for bit",
     "cli/test_interrupts.py::test_kills_at_any_moment_do_not_change_the_result"),
    ("interrupted once", "saves, and shows how to resume",
     "cli/test_interrupts.py::test_an_interrupt_saves_and_shows_how_to_resume"),
    ("interrupted twice", "stops at once, and loses nothing",
     "cli/test_interrupts.py::test_a_second_interrupt_stops_at_once"),
    ("two processes on one run", "the second is refused",
     "cli/test_interrupts.py::test_a_second_process_is_rejected_and_harmless"),
    ("damaged newest checkpoint", "the one before is used, and the run says so",
     "experiment/test_damage.py::test_damaged_checkpoint_is_passed_over"),
    ("checkpoint of a stranger with a pickle", "never opened",
     "experiment/test_damage.py::test_pickles_are_never_opened"),
    ("changed settings", "resuming is refused",
     "experiment/test_damage.py::test_changed_config_is_refused"),
    ("changed pictures", "resuming is refused",
     "experiment/test_damage.py::test_changed_data_is_refused"),
    ("full disk while training", "stops with one line; resumes to the same end",
     "experiment/test_damage.py::test_full_disk_stops_cleanly"),
    ("run folder vanishes", "stops with one line",
     "experiment/test_damage.py::test_vanished_folder_stops_cleanly"),
    ("read-only disk", "one line", "storage/test_atomic.py::test_a_read_only_disk_is_reported"),
    ("damaged result, predictions, model or digests", "`resume` writes them again",
     "experiment/test_repair.py::test_damaged_files_are_written_again"),
    ("damaged files, no checkpoint left", "one line, and nothing is touched",
     "experiment/test_repair.py::test_nothing_is_touched_without_a_checkpoint"),
    ("file changed after training", "commands say so; `verify` names it",
     "cli/commands/test_verify.py::test_a_changed_file"),
    ("run of an earlier version, without hashes", "works as before",
     "cli/commands/test_verify.py::test_a_run_without_hashes"),
    ("named pipe instead of a file", "refused without waiting",
     "files/test_reading.py::test_a_pipe_is_refused_without_waiting"),
    ("huge file", "refused", "files/test_reading.py::test_a_large_file_is_refused"),
    ("deeply nested JSON", "refused", "files/test_reading.py::test_damaged_json"),
    ("deeply nested TOML", "refused", "files/test_reading.py::test_damaged_toml"),
    ("control characters in names", "shown escaped",
     "test_errors.py::test_names_cannot_control_the_terminal"),
    ("requests from other hosts and sites", "refused",
     "labeling/test_server.py::test_changes_need_the_token_and_this_origin"),
)  # fmt: skip


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


def read_figures(path: Path = FIGURES) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def render_page() -> str:
    """The page, from the promises and the figures."""
    lines = [INTRODUCTION, "| case | promise | test |", "| --- | --- | --- |"]
    lines += [f"| {case} | {promise} | `tests/{test}` |" for case, promise, test in PROMISES]
    lines += [
        "",
        "## Figures",
        "",
        "| script | date | commit | figures |",
        "| --- | --- | --- | --- |",
    ]
    for line in read_figures():
        kind, date, commit = (line.pop(key) for key in ("kind", "date", "commit"))
        figures = ", ".join(f"{name} {value}" for name, value in line.items())
        lines.append(f"| `benchmarks/{kind}.py` | {date} | {commit} | {figures} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
