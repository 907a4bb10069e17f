"""A long run with troubles: killed, starved of disk, its pictures damaged; it ends as if alone.

    python -m benchmarks.soak [--steps 20000] [--seed 0] [--record]

First the run alone, then the same with troubles: kills, interrupts, stops, a disk that fills and
empties, pictures that break and are repaired. Its results must be equal, bit for bit; memory, open
files and threads of every process must stay flat. Only for Linux.
"""

import argparse
import collections
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

import numpy as np
import torch
from benchmarks.children import compare, fork_command, read_outputs, wait, wait_for, warm_up
from benchmarks.reliability import record_figures
from PIL import Image

PERIOD = 2.0  # seconds between two looks at a process
SETTLED = 30.0  # seconds after which a process has allocated what it needs
LONGEST = 90.0  # seconds between two troubles
CLASSES = ("cat", "dog", "fox")


class Look(NamedTuple):
    """What a process uses."""

    seconds: float  # since it started
    memory: float  # MiB
    files: int
    threads: int


class Watch:
    """How much the processes of a run have grown since they settled, at most."""

    def __init__(self) -> None:
        self.memory, self.files, self.threads = 0.0, 0, 0
        self.longest = 0.0  # seconds of the process that lived longest
        self.first: Look | None = None

    def begin(self) -> None:
        self.began = time.monotonic()
        self.first = None

    def look(self, child: int) -> None:
        look = look_at(child, time.monotonic() - self.began)
        if look is None or look.seconds < SETTLED:
            return
        self.first = first = self.first or look
        self.memory = max(self.memory, look.memory - first.memory)
        self.files = max(self.files, look.files - first.files)
        self.threads = max(self.threads, look.threads - first.threads)
        self.longest = max(self.longest, look.seconds)


def look_at(child: int, seconds: float) -> Look | None:
    place = Path(f"/proc/{child}")
    try:
        lines = (place / "status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        memory = int(status["VmRSS"].split()[0]) / 1024
        return Look(seconds, memory, len(os.listdir(place / "fd")), int(status["Threads"]))
    except (OSError, KeyError):  # it has ended
        return None


def write_pictures(folder: Path) -> None:
    """Three kinds of noise: few labeled, many unlabeled; some files are damaged all the time."""
    rng = np.random.default_rng(0)
    for part, count in (("labeled", 6), ("unlabeled", 60), ("test", 10)):
        for number, label in enumerate(CLASSES):
            place = folder / part / ("" if part == "unlabeled" else label)
            place.mkdir(parents=True, exist_ok=True)
            for each in range(count):
                pixels = rng.integers(0, 128, (24, 24, 3), dtype=np.uint8)
                pixels[..., number] += 100
                Image.fromarray(pixels).save(place / f"{label}-{each}.png")
    for number in range(3):
        (folder / "unlabeled" / f"damaged-{number}.png").write_bytes(rng.bytes(100 * number))


class Soak:
    """One run with troubles, which are drawn at random."""

    def __init__(self, place: Path, pictures: Path, steps: int, seed: int) -> None:
        self.run, self.output, self.pictures = place / "run", place / "output", pictures
        self.train = (
            *("train", pictures, "--steps", steps, "--out", self.run),
            *("--set", "model.name=wrn-10-1", "--set", "data.size=16"),
            *("--set", "training.batch=4", "--set", "training.ratio=2"),
            *("--set", "training.log_every=50", "--set", "training.checkpoint_every=100"),
        )
        self.rng = random.Random(seed)
        self.watch = Watch()
        self.troubles = collections.Counter[str]()

    def finish_alone(self) -> float:
        """Train without any trouble; returns the seconds it took."""
        began = time.monotonic()
        child = fork_command(self.train, self.output)
        self.watch.begin()
        while (code := wait_for(child, PERIOD)) is None:
            self.watch.look(child)
        assert code == 0, self.output.read_text()
        return time.monotonic() - began

    def finish_with_troubles(self) -> None:
        kinds: tuple[Callable[[int], int | None], ...] = (
            self.kill, self.interrupt, self.pause, self.fill_disk, self.damage_picture,
        )  # fmt: skip
        argv: Sequence[object] = self.train
        while True:
            child = fork_command(argv, self.output)
            code = self.live(child, kinds)
            if code == 0:
                return
            text = self.output.read_text()
            lines = [line for line in text.splitlines() if line.startswith("fullmatch: ")]
            if (code == 2 and len(lines) != 1) or code not in (2, 130, -signal.SIGKILL):
                raise AssertionError(f"ended with {code}: {text[-2000:]}")
            argv = ("resume", self.run) if (self.run / "config.toml").exists() else self.train

    def live(self, child: int, kinds: Sequence[Callable[[int], int | None]]) -> int:
        """Until the process ends, one trouble after the other."""
        self.watch.begin()
        while True:
            end = time.monotonic() + self.rng.uniform(1, LONGEST)
            while time.monotonic() < end:
                if (code := wait_for(child, PERIOD)) is not None:
                    return code
                self.watch.look(child)
            trouble = self.rng.choice(kinds)
            self.troubles[trouble.__name__] += 1
            if (code := trouble(child)) is not None:
                return code

    def kill(self, child: int) -> int | None:
        os.kill(child, signal.SIGKILL)
        return wait(child)

    def interrupt(self, child: int) -> int | None:
        os.kill(child, self.rng.choice((signal.SIGINT, signal.SIGTERM)))
        return wait(child)

    def pause(self, child: int) -> int | None:
        os.kill(child, signal.SIGSTOP)
        time.sleep(2)
        os.kill(child, signal.SIGCONT)
        return None

    def fill_disk(self, child: int) -> int | None:
        """For some seconds no file of the process can grow; most often it notices, and ends."""
        limits = resource.prlimit(child, resource.RLIMIT_FSIZE)
        resource.prlimit(child, resource.RLIMIT_FSIZE, (self.rng.randrange(50_000), limits[1]))
        code = wait_for(child, self.rng.uniform(0.1, 20))
        if code is None:
            resource.prlimit(child, resource.RLIMIT_FSIZE, limits)
        return code

    def damage_picture(self, child: int) -> int | None:
        """A picture is truncated for some seconds; the process was killed by then, or goes on."""
        path = self.rng.choice(sorted(self.pictures.glob("unlabeled/*-*.png")))
        content = path.read_bytes()
        os.truncate(path, len(content) // 2)
        try:
            if self.rng.random() < 0.5:
                return self.resume_on_damage(child)
            return wait_for(child, 5)
        finally:
            path.write_bytes(content)

    def resume_on_damage(self, child: int) -> int:
        """A run that is resumed while a picture is damaged says so, and changes nothing."""
        if (code := wait_for(child, 0)) is None:
            os.kill(child, signal.SIGKILL)
            code = wait(child)
        if (self.run / "config.toml").exists():
            refused = wait(fork_command(("resume", self.run), self.output))
            assert refused in (0, 2), self.output.read_text()
        return code


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    warm_up()
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        figures = soak(Path(place), options.steps, options.seed)
    print(figures)
    if options.record:
        record_figures("soak", **figures)
    sys.exit(0 if figures["bit_equal"] else 1)


def soak(place: Path, steps: int, seed: int) -> dict[str, object]:
    """Both runs; returns what they have shown."""
    pictures = place / "pictures"
    write_pictures(pictures)
    alone, troubled = (Soak(place / name, pictures, steps, seed) for name in ("alone", "troubled"))
    for each in (alone, troubled):
        each.run.parent.mkdir()
    seconds = alone.finish_alone()
    print(f"alone: {seconds:.0f} s", flush=True)
    began = time.monotonic()
    troubled.finish_with_troubles()
    different = compare(read_outputs(alone.run), read_outputs(troubled.run))
    if different:
        print(f"different: {different}")
        shutil.copytree(place, Path(tempfile.mkdtemp(prefix="soak-kept-")), dirs_exist_ok=True)
    watches = (alone.watch, troubled.watch)
    return {
        "steps": steps,
        "seed": seed,
        "seconds_alone": round(seconds),
        "seconds_troubled": round(time.monotonic() - began),
        **troubled.troubles,
        "bit_equal": not different,
        "memory_growth_mib": round(max(watch.memory for watch in watches), 1),
        "file_growth": max(watch.files for watch in watches),
        "thread_growth": max(watch.threads for watch in watches),
        "longest_process_seconds": round(max(watch.longest for watch in watches)),
    }


if __name__ == "__main__":
    main()
