"""Measure the steps per second of every algorithm, and of the larger networks, on this GPU.

    python benchmarks/engine.py [--processes 8] [--only CASE ...] [--again] [--commit HASH]

Compiles several cases in parallel and times them one at a time, while the others are paused.
Appends to docs/results/engine.jsonl what it does not have yet for this device (with `--again`,
everything; the newest line counts) and writes docs/results/engine.md from it.
"""

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, cast

RESULTS = Path(__file__).parents[1] / "docs" / "results"
LEDGER, PAGE = RESULTS / "engine.jsonl", RESULTS / "engine.md"
READY = "ready"
SETTLE_SECONDS = 0.5  # for the device to finish what paused processes had sent it


class Case(NamedTuple):
    """What to measure."""

    data: str
    algorithm: str
    settings: tuple[str, ...] = ()


FILES = "files"  # as data: a folder of pictures that are decoded when a step needs them
LARGER = {
    "fullmatch, weak view apart": Case("cifar10", "fullmatch", ("training.weak_gradient=false",)),
    "fullmatch, wrn-28-8, 100 classes": Case("cifar100", "fullmatch"),
    "fullmatch, wrn-37-2, 96x96": Case("stl10", "fullmatch"),
    "fullmatch, resnet50, files of 224x224": Case(
        FILES,
        "fullmatch",
        ("model.name=resnet50", "training.batch=16", "training.ratio=7"),
    ),
}
INTRODUCTION = (
    "Written by `python benchmarks/engine.py`: `fullmatch bench` on noise in the shape of",
    "CIFAR-10 (wrn-28-2) unless the case says otherwise, with default settings; the median of",
    "three times 100 steps. Images per step are labeled + unlabeled images, before views are",
    "made of them. *Cost* is relative to FixMatch with as many labeled images, measured at the",
    "same commit. Stages are timed inside the recorded step. *Waited* is how long a step waited",
    "for pictures. Peaks are the rates that the same run measured for an 8192x8192 bf16 matrix",
    "product and for a copy of 2 GiB; the bytes of a step count every operand and result of",
    "convolutions and batch norms once. The case with files reads JPEG files while earlier steps",
    "run. The time of the first step includes compilation, with other cases compiled in parallel.",
)
HEADER = (
    "| case | images per step | steps/s | cost relative to fixmatch "
    "| augmentation, forward, backward, update, ms | waited, ms | of matrix peak "
    "| of memory peak | GiB | first step, s | date, commit |",
    "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
)
STAGES = ("augmentation", "forward", "backward", "update")
Row = dict[str, Any]  # a line of the ledger


def list_cases() -> dict[str, Case]:
    """Name everything that is measured."""
    from fullmatch.algorithms import algorithm, names
    from fullmatch.experiment.settings import display_name

    by_algorithm = {display_name(algorithm(name)): Case("cifar10", name) for name in names()}
    return {**by_algorithm, **LARGER}


class Turn:
    """Announces that everything is compiled, and waits until the device is free."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def __enter__(self) -> None:
        self.pipe.send(READY)
        self.pipe.recv()

    def __exit__(self, *_: object) -> None:
        pass


def measure_case(pipe: Connection, case: Case) -> None:
    """Measure one case in its own process; send the result, or the text of an error."""
    import numpy as np

    from fullmatch.data.sources import picture_files
    from fullmatch.experiment.bench import measure_speed
    from fullmatch.experiment.settings import resolve

    data, algorithm, settings = case
    try:
        with tempfile.TemporaryDirectory() as folder:
            if data == FILES:
                picture_files.MAX_BYTES_IN_MEMORY = 0
                data = str(write_photographs(Path(folder)))
            if algorithm.removeprefix("full-") == "semco":
                embeddings = Path(folder) / "embeddings.npy"
                np.save(embeddings, np.random.default_rng(0).normal(size=(10, 300)))
                settings = (*settings, f"algorithm.embeddings={embeddings}")
            config = resolve(data=data, algorithm=algorithm, assignments=settings)
            result = measure_speed(config, exclusive=Turn(pipe))
            pipe.send(result.to_table() | {"data": case.data})
    except Exception:
        pipe.send(traceback.format_exc())


def write_photographs(folder: Path, count: int = 1000, side: int = 224) -> Path:
    """Write JPEG files about as large as photographs: smooth colors and a little noise."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(count):
        small = Image.fromarray(random.integers(0, 256, (14, 14, 3), np.uint8))
        smooth = np.asarray(small.resize((side, side), Image.Resampling.BICUBIC))
        pixels = np.clip(smooth + random.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8)
        parent = folder / (f"labeled/class {number % 10}" if number < 100 else "unlabeled")
        parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(parent / f"{number}.jpg", quality=90)
    return folder


def measure_all(cases: Iterable[tuple[str, Case]], processes: int) -> Iterator[tuple[str, Any]]:
    """Yield the result of each case, or the text of an error, as they arrive.

    Up to `processes` cases compile in parallel; as soon as one is ready it is timed, while the
    others are paused.
    """
    context = multiprocessing.get_context("spawn")
    waiting = iter(cases)
    running: dict[Connection, tuple[str, BaseProcess]] = {}

    def start(count: int) -> None:
        for name, case in islice(waiting, count):
            ours, theirs = context.Pipe()
            process = context.Process(target=measure_case, args=(theirs, case), daemon=False)
            process.start()
            theirs.close()
            running[ours] = (name, process)

    start(processes)
    while running:
        pipe = cast(Connection, wait(list(running))[0])
        name, process = running.pop(pipe)
        message = receive(pipe)
        if message == READY:
            with pause([other for _, other in running.values()]):
                pipe.send("go")
                message = receive(pipe)
        process.join()
        start(1)
        yield name, message


@contextmanager
def pause(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Pause the processes, let the device finish their work, and continue them afterwards."""
    for process in processes:
        send_signal(process, signal.SIGSTOP)
    time.sleep(SETTLE_SECONDS)
    try:
        yield
    finally:
        for process in processes:
            send_signal(process, signal.SIGCONT)


def send_signal(process: BaseProcess, number: signal.Signals) -> None:
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, number)


def receive(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "the process died"


def read_ledger(path: Path = LEDGER) -> dict[tuple[str, str], Row]:
    """Return the newest line of every case and device."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {(row["case"], row["device"]): row for row in rows}


def format_page(rows: list[Row]) -> str:
    lines = ["# Steps per second", "", *INTRODUCTION]
    for device in sorted({row["device"] for row in rows}):
        table = sorted((row for row in rows if row["device"] == device), key=lambda r: r["case"])
        lines += ["", f"## {device}", "", *HEADER]
        lines += [format_row(row, relative_cost(row, table)) for row in table]
    return "\n".join(lines) + "\n"


def relative_cost(row: Row, table: Sequence[Row]) -> str:
    """Divide a step's time by FixMatch's on the same data, with the same labels and commit."""
    keys = ("data", "model", "labeled_images", "commit")
    for other in table:
        if other["case"] == "fixmatch" and all(other[key] == row[key] for key in keys):
            return f"{other['steps_per_second'] / row['steps_per_second']:.2f}"
    return "-"


def format_row(row: Row, cost: str) -> str:
    stages = ", ".join(f"{row['milliseconds'][stage]:.2f}" for stage in STAGES)
    torch = f", torch {row['versions']['torch']}" if "versions" in row else ""
    return (
        f"| {row['case']} | {row['labeled_images']} + {row['unlabeled_images']} "
        f"| {row['steps_per_second']:.1f} | {cost} | {stages} "
        f"| {row['milliseconds_waited_for_pictures']:.2f} "
        f"| {100 * row.get('share_of_matrix_peak', 0):.0f} % "
        f"| {100 * row.get('share_of_memory_peak', 0):.0f} % "
        f"| {row.get('peak_memory_gib', 0):.1f} | {row['seconds_to_first_step']:.0f} "
        f"| {row['date']}, `{row['commit']}`{torch} |"
    )


def parse_arguments(arguments: Sequence[str] | None, cases: dict[str, Case]) -> argparse.Namespace:
    from fullmatch.errors import did_you_mean

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8, help="cases compiled in parallel")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="as named in engine.md")
    parser.add_argument("--again", action="store_true", help="also measure what the ledger has")
    parser.add_argument("--commit", help="of the code, if it is not in a git checkout")
    options = parser.parse_args(arguments)
    for name in options.only or ():
        if name not in cases:
            parser.error(f"unknown case {name!r}{did_you_mean(name, cases)}")
    if options.processes < 1:
        parser.error(f"--processes is {options.processes}, expected 1 or more")
    return options


def current_commit() -> str:
    from fullmatch.reproduce.provenance import current_code

    code = current_code()
    return (code.commit or "unknown")[:7] + " and changes" * bool(code.dirty)


def main(arguments: Sequence[str] | None = None) -> None:
    import torch

    from fullmatch.experiment.machine import device_name

    cases = list_cases()
    options = parse_arguments(arguments, cases)
    device = device_name(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    commit = options.commit or current_commit()
    selected = options.only or list(cases)
    if not options.again:
        measured = {case for case, where in read_ledger() if where == device}
        selected = [name for name in selected if name not in measured]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, row in measure_all([(name, cases[name]) for name in selected], options.processes):
        if isinstance(row, str):
            print(f"{name}: {row}", flush=True)
            continue
        row |= {"case": name, "date": str(date.today()), "commit": commit}
        with LEDGER.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(row) + "\n")
        print(f"{name:34} {row['steps_per_second']:7.1f} steps/s", flush=True)
    if not selected:
        print(f"nothing to measure: every case was measured on {device}; use --again to repeat")
    PAGE.write_text(format_page(list(read_ledger().values())), encoding="utf-8")


if __name__ == "__main__":
    main()
