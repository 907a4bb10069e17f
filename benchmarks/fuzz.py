"""Damaged files and requests: every command must end well or in one line.

    python -m benchmarks.fuzz [--count 5000] [--first 0] [--minutes 20] [--only run] [--record]

Case N is a function of N: which file is damaged how, and which command reads it. Each case runs in
a process of its own with 10 seconds of computing and 2 GiB. `--first` continues where an earlier
call ended; `--record` appends the figures to docs/results/reliability.jsonl. Only for Linux.
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

import torch
from benchmarks.fuzz_cases import CASES
from benchmarks.fuzz_originals import Originals, make_originals, warm_up
from benchmarks.isolation import Ending, Outcome, run_isolated
from benchmarks.reliability import record_figures


def run_case(number: int, originals: Originals, only: str | None = None) -> tuple[str, Ending]:
    """One case, in a folder of its own that is removed afterwards."""
    rng = random.Random(f"fullmatch {number}")
    kinds = [only] if only else list(CASES)
    kind = rng.choices(kinds, [CASES[name][0] for name in kinds])[0]
    place = originals.place / f"case-{number}"
    place.mkdir()
    try:
        what, work = CASES[kind][1](originals, place, rng)
        before = os.getcwd()
        os.chdir(place)
        try:
            ending = run_isolated(work, originals.place / "log")
        finally:
            os.chdir(before)
    finally:
        shutil.rmtree(place)
    if ending.outcome is Outcome.OK and says_nan(ending.output):
        ending = Ending(Outcome.NONSENSE, ending.output)
    return f"{kind}: {what}", ending


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
    pictures = hash_pictures(originals.pictures)
    outcomes = collections.Counter[str]()
    end = time.monotonic() + seconds
    for number in range(first, first + count):
        what, ending = run_case(number, originals, only)
        outcomes[ending.outcome.value] += 1
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
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=home) as place:
        seconds = 60 * options.minutes
        outcomes = run_cases(Path(place), options.first, options.count, options.only, seconds)
    seconds = round(time.monotonic() - began)
    print(f"{outcomes.total()} cases in {seconds} s: {dict(outcomes)}")
    if options.record:
        record_figures("fuzz", first=options.first, seconds=seconds, **outcomes)
    bad = outcomes.total() - outcomes["ok"] - outcomes["refused"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
