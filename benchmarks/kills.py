"""Runs that are killed or starved at any instant end as if nothing had happened, bit for bit.

    python -m benchmarks.kills [--count 200] [--first 0] [--minutes 30] [--record]

Case N is a function of N: the run, the trouble and its place. Kills come at a random time, before
or after a random system call that changes files, or at a random byte of a file. Other troubles are
system calls that fail, a full disk, a run folder that vanishes, a second process and too little
memory. After each of them the run is resumed until it is finished. Only for Linux.
"""

import argparse
import collections
import errno
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from benchmarks.children import (
    compare,
    fork_command,
    kill_here,
    limit_files,
    read_outputs,
    wait,
    wait_for,
    warm_up,
    watch_calls,
)
from benchmarks.reliability import record_figures

from fullmatch.experiment.repair import find_unusable
from fullmatch.storage.run_folder import RunFolder

SMALL = (
    *("--steps", 5, "--set", "training.batch=4", "--set", "training.ratio=2"),
    *("--set", "training.log_every=2", "--set", "training.checkpoint_every=2"),
    *("--set", "model.name=wrn-10-1"),
)
DIGITS = ("train", "digits", "--labels", 20, *SMALL)
ALGORITHMS = ("fullmatch", "fullflex", "freematch", "comatch", "mixmatch", "mean_teacher")
ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT)
REFUSED = 2  # exit code of an error in one line


class Original(NamedTuple):
    """A run without trouble."""

    argv: tuple[object, ...]
    outputs: dict[str, object]
    calls: int  # system calls that changed files
    largest: int  # bytes of its largest file
    seconds: float


class Trial:
    """One run in a folder of its own, which is troubled once or twice and then finished."""

    def __init__(self, place: Path, original: Original, rng: random.Random) -> None:
        self.run, self.output = place / "run", place / "output"
        self.place, self.original, self.rng = place, original, rng

    @property
    def command(self) -> tuple[object, ...]:
        """What a user would do next."""
        if (self.run / "config.toml").exists():
            return ("resume", self.run)
        return (*self.original.argv, "--out", self.run)

    def start(self, prepare: Callable[[], object] = lambda: None) -> int:
        return fork_command(self.command, self.output, prepare)

    # Kills

    def kill_at_a_time(self) -> int:
        child = self.start()
        code = wait_for(child, self.rng.uniform(0, self.original.seconds))
        if code is None:
            os.kill(child, signal.SIGKILL)
            code = wait(child)
        return code

    def kill_before_a_call(self) -> int:
        place = self.rng.randint(1, self.original.calls)
        return wait(self.start(lambda: watch_calls(lambda number: at(place, number, kill_here))))

    def kill_after_a_call(self) -> int:
        place = self.rng.randint(1, self.original.calls)
        nothing = lambda number: None  # noqa: E731
        return wait(
            self.start(lambda: watch_calls(nothing, lambda number: at(place, number, kill_here)))
        )

    def kill_at_a_byte(self) -> int:
        place, size = self.rng.randint(1, self.original.calls), self.draw_size()

        def limit() -> None:
            limit_files(size, deadly=True)

        return wait(self.start(lambda: watch_calls(lambda number: at(place, number, limit))))

    def draw_size(self) -> int:
        return int(self.original.largest ** self.rng.random())

    # Other troubles

    def fail_a_call(self) -> int:
        place, reason = self.rng.randint(1, self.original.calls), self.rng.choice(ERRORS)

        def fail() -> None:
            raise OSError(reason, os.strerror(reason))

        return wait(self.start(lambda: watch_calls(lambda number: at(place, number, fail))))

    def fill_disk(self) -> int:
        place, size = self.rng.randint(1, self.original.calls), self.draw_size()

        def limit() -> None:
            limit_files(size, deadly=False)

        return wait(self.start(lambda: watch_calls(lambda number: at(place, number, limit))))

    def move_folder(self) -> int:
        """The run's folder vanishes while it trains, as a network disk does, and comes back."""
        child = self.start()
        code = wait_for(child, self.rng.uniform(0, self.original.seconds))
        elsewhere = self.place / "elsewhere"
        if self.run.exists():
            self.run.rename(elsewhere)
        code = wait(child) if code is None else code
        if elsewhere.exists():
            shutil.rmtree(self.run, ignore_errors=True)
            elsewhere.rename(self.run)
        return code

    def start_a_second_process(self) -> int:
        child = self.start()
        code = None
        while code is None and not (self.run / "config.toml").exists():
            code = wait_for(child, 0.02)
        if code is not None:
            return code
        second = wait(fork_command(("resume", self.run), self.place / "second"))
        assert second in (0, REFUSED), (self.place / "second").read_text()
        return wait(child)

    def limit_memory(self) -> int:
        more = int(2 ** self.rng.uniform(10, 27))

        def limit() -> None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = pages * os.sysconf("SC_PAGE_SIZE") + more
            resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

        return wait(self.start(limit))

    def finish(self) -> list[str]:
        """Resume until the end; returns which outputs differ from those without trouble."""
        if wait(self.start()) != 0:
            return [f"cannot go on: {self.output.read_text()[-1500:]}"]
        if find_unusable(RunFolder(self.run)):
            return ["its files are not those of its manifest"]
        return compare(self.original.outputs, read_outputs(self.run))


KILLS = (
    Trial.kill_at_a_time,
    Trial.kill_before_a_call,
    Trial.kill_after_a_call,
    Trial.kill_at_a_byte,
)
OTHERS = (
    Trial.fail_a_call,
    Trial.fill_disk,
    Trial.move_folder,
    Trial.start_a_second_process,
    Trial.limit_memory,
)
Trouble = Callable[[Trial], int]


def at(place: int, number: int, action: Callable[[], object]) -> None:
    if number == place:
        action()


def list_commands() -> list[tuple[object, ...]]:
    """Runs of several algorithms, and one with a baseline."""
    commands = [(*DIGITS, "--algorithm", algorithm) for algorithm in ALGORITHMS]
    return [*commands, (*DIGITS, "--baseline")]


def make_original(argv: tuple[object, ...], place: Path) -> Original:
    """The run alone, once; and once more to count its system calls.

    All runs have the same path, since a baseline refers to the run that it belongs to.
    """
    run, output = place / "run", place / "output"
    began = time.monotonic()
    assert wait(fork_command((*argv, "--out", run), output)) == 0, output.read_text()
    seconds = time.monotonic() - began
    outputs = read_outputs(run)
    largest = max(path.stat().st_size for path in run.rglob("*"))
    shutil.rmtree(run)
    notes = os.open(place / "calls", os.O_WRONLY | os.O_CREAT)

    def count() -> None:
        watch_calls(lambda number: (os.pwrite(notes, str(number).encode(), 0), None)[1])

    assert wait(fork_command((*argv, "--out", run), output, count)) == 0, output.read_text()
    os.close(notes)
    if different := compare(outputs, read_outputs(run)):
        raise AssertionError(f"{argv} twice gives other results: {different}")
    shutil.rmtree(run)
    return Original(argv, outputs, int((place / "calls").read_text()), largest, seconds)


def run_trial(number: int, place: Path, originals: Sequence[Original]) -> tuple[str, bool, str]:
    """The name of the trouble, whether it struck, and what went wrong."""
    rng = random.Random(f"kills {number}")
    original = originals[number % len(originals)]
    trouble: Trouble = rng.choice(OTHERS) if number % 6 == 5 else KILLS[number % len(KILLS)]
    place.mkdir()
    try:
        trial = Trial(place, original, rng)
        code = trouble(trial)
        text = trial.output.read_text(errors="replace")
        if trouble not in KILLS and not ended_well(trouble, code, text):
            return trouble.__name__, True, f"ended with {code}: {text[-1500:]}"
        if trouble in KILLS and code < 0 and rng.random() < 0.3:
            trouble(trial)  # once more, while it is resumed
        return trouble.__name__, code != 0, "; ".join(trial.finish())
    finally:
        shutil.rmtree(place)


def ended_well(trouble: Trouble, code: int, text: str) -> bool:
    """It went on, or stopped with one line; where memory ends, also by a signal."""
    if trouble is Trial.limit_memory:
        return True
    lines = [line for line in text.splitlines() if line.startswith("fullmatch: ")]
    return code == 0 or (code == REFUSED and len(lines) == 1)


def run_trials(
    place: Path,
    commands: Sequence[tuple[object, ...]],
    first: int,
    count: int,
    seconds: float = 1e9,
) -> dict[str, int]:
    """Trials until so many have struck; returns how many of them ended as without trouble."""
    originals = []
    home = place / "trial"  # one after the other
    for argv in commands:
        home.mkdir()
        originals.append(make_original(argv, home))
        shutil.rmtree(home)
    seconds_each = [round(original.seconds, 1) for original in originals]
    print(f"{len(originals)} runs of {seconds_each} s", flush=True)
    kills = {trouble.__name__ for trouble in KILLS}
    names = collections.Counter[str]()
    equal, killed, number, end = 0, 0, first, time.monotonic() + seconds
    while killed < count and time.monotonic() < end:
        name, struck, wrong = run_trial(number, home, originals)
        names[name] += struck
        killed += struck and name in kills
        equal += struck and name in kills and not wrong
        if wrong:
            names["wrong"] += 1
            print(f"trial {number}, {name}, {originals[number % len(originals)].argv}:\n{wrong}\n")
        number += 1
        if number % 20 == 0:
            print(f"{number}: {equal} of {killed} kills, {dict(names)}", flush=True)
    return {"last": number - 1, "kills": killed, "bit_equal": equal, "wrong": 0, **names}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    warm_up()
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-", dir=home) as place:
        commands, limit = list_commands(), 60 * options.minutes
        figures = run_trials(Path(place), commands, options.first, options.count, limit)
    seconds = round(time.monotonic() - began)
    print(f"{figures} in {seconds} s")
    if options.record:
        record_figures("kills", first=options.first, seconds=seconds, **figures)
    sys.exit(1 if figures["wrong"] else 0)


if __name__ == "__main__":
    main()
