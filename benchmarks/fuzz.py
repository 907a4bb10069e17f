"""Damaged files and requests: every command must end well or in one line.

    python -m benchmarks.fuzz [--count 1000] [--first 0] [--minutes 20] [--only run] [--record]

Case N is a function of N: which file is damaged how, and which command reads it. Each case runs in
a process of its own with 2 GiB, and per file 10 seconds of computing, however busy the machine is,
and a minute by the clock; it reads one with a whole command, or several with the function that the
commands read them with. `--first` continues where an earlier call ended; `--record` appends the
figures to docs/results/reliability.jsonl. For Linux.
"""

import argparse
import collections
import hashlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from benchmarks.fuzz_cases import CASES
from benchmarks.fuzz_originals import Originals, Prepared, make_originals, warm_up
from benchmarks.isolation import PATIENCE, Ending, Outcome, limit_time, run_isolated
from benchmarks.reliability import record_figures
from cyclopts import CycloptsError

from fullmatch.errors import UserError

BAD = ("traceback", "hang", "executed", "memory", "crash", "nonsense")
MARKS = {"ok": "<<ended well>>", "refused": "<<refused>>"}  # printed after each damaged file


class CaseEnding(NamedTuple):
    """What a case was, how its process ended, and how many damaged files ended how."""

    what: str
    ending: Ending
    outcomes: collections.Counter[str]


def run_case(number: int, originals: Originals, only: str | None = None) -> CaseEnding:
    """One case, in a folder of its own that is removed afterwards."""
    rng = random.Random(f"fullmatch {number}")
    kinds = [only] if only else list(CASES)
    name = rng.choices(kinds, [CASES[kind].weight for kind in kinds])[0]
    place = originals.place / f"case-{number}"
    place.mkdir()
    try:
        count = CASES[name].files
        prepared = [prepare(name, originals, place / str(at), rng) for at in range(count)]
        before = os.getcwd()
        os.chdir(place)
        try:
            patience = PATIENCE * len(prepared)
            ending = run_isolated(lambda: run_each(prepared), originals.place / "log", patience)
        finally:
            os.chdir(before)
    finally:
        shutil.rmtree(place)
    counts = collections.Counter({end: ending.output.count(mark) for end, mark in MARKS.items()})
    if ending.outcome is Outcome.OK and says_nan(shown_by_good_ones(ending.output)):
        ending = Ending(Outcome.NONSENSE, ending.output)
    if not ending.outcome.good:
        counts[ending.outcome.value] += 1
    return CaseEnding(f"{name}: {'; '.join(what for what, _ in prepared)}", ending, +counts)


def prepare(name: str, originals: Originals, place: Path, rng: random.Random) -> Prepared:
    place.mkdir()
    return CASES[name].case(originals, place, rng)


def run_each(prepared: Sequence[Prepared]) -> None:
    """Each damaged file must be read, or be refused in one line."""
    for what, work in prepared:
        print(what, flush=True)
        limit_time()
        try:
            work()
        except (UserError, CycloptsError) as error:
            print(f"{error}\n{MARKS['refused']}")
        except SystemExit as end:
            print(MARKS["refused" if end.code else "ok"])
        else:
            print(MARKS["ok"])


def shown_by_good_ones(output: str) -> str:
    """What was printed about files that were not refused; a refusal may quote a NaN."""
    parts = output.split(MARKS["ok"])[:-1]
    return " ".join(part.rpartition(MARKS["refused"])[2] for part in parts)


def says_nan(output: str) -> bool:
    return any(word.strip("%,()") in ("nan", "inf") for word in output.split())


def hash_pictures(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def run_cases(
    place: Path, first: int, count: int, only: str | None = None, seconds: float = 1e9
) -> collections.Counter[str]:
    """Run the cases; print those that ended badly; return how many ended how."""
    originals = make_originals(place)
    warm_up(originals)
    print(f"{len(os.listdir('/proc/self/task'))} threads", flush=True)  # one: forking is safe
    pictures = hash_pictures(originals.pictures)
    outcomes = collections.Counter[str]()
    end = time.monotonic() + seconds
    for number in range(first, first + count):
        what, ending, counts = run_case(number, originals, only)
        outcomes += counts
        if not ending.outcome.good:
            print(f"case {number}: {ending.outcome.value}: {what}\n{ending.output[-1500:]}\n")
        if number % 100 == 99:
            print(f"{number + 1}: {dict(outcomes)}", flush=True)
        if time.monotonic() > end:
            break
    if hash_pictures(originals.pictures) != pictures:
        outcomes["pictures changed"] += 1
    return outcomes


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # the usual one has a thread
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=home) as place:
        seconds = 60 * options.minutes
        outcomes = run_cases(Path(place), options.first, options.count, options.only, seconds)
    seconds = round(time.monotonic() - began)
    print(f"{outcomes.total()} damaged files in {seconds} s: {dict(outcomes)}")
    if options.record:
        figures = dict.fromkeys(BAD, 0) | outcomes
        cases = outcomes.total()
        record_figures("fuzz", cases=cases, first=options.first, seconds=seconds, **figures)
    bad = outcomes.total() - outcomes["ok"] - outcomes["refused"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
