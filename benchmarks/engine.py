"""Steps a second of every algorithm, and of the larger networks, on the GPU at hand.

    python benchmarks/engine.py [--processes 8] [--only CASE ...] [--again] [--commit HASH]

Compiles several cases side by side and times them one at a time, the others stopped meanwhile.
Appends to docs/results/engine.jsonl what is not there yet for this device (`--again` measures anew,
and the newest line counts) and writes docs/results/engine.md from it.
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
from typing import Any, cast

RESULTS = Path(__file__).parents[1] / "docs" / "results"
LEDGER, PAGE = RESULTS / "engine.jsonl", RESULTS / "engine.md"
READY = "ready"
SETTLE = 0.5  # seconds that a device may need for what stopped processes had sent it
Case = tuple[str, str, tuple[str, ...]]  # data set, algorithm, settings
FILES = "files"  # a folder of pictures that are decoded when a step needs them
LARGER: dict[str, Case] = {
    "fullmatch, weak view apart": ("cifar10", "fullmatch", ("training.weak_gradient=false",)),
    "fullmatch, wrn-28-8, 100 classes": ("cifar100", "fullmatch", ()),
    "fullmatch, wrn-37-2, 96x96": ("stl10", "fullmatch", ()),
    "fullmatch, resnet50, files of 224x224": (
        FILES,
        "fullmatch",
        ("model.name=resnet50", "training.batch=16", "training.ratio=7"),
    ),
}
INTRODUCTION = (
    "Written by `python benchmarks/engine.py`. `fullmatch bench` on noise in the shape of",
    "CIFAR-10 (wrn-28-2) unless the case says otherwise, with every setting at its default;",
    "median of three times 100 steps. Images a step are labeled + unlabeled ones, before views",
    "are made of them. *Cost* is beside FixMatch of as many labeled images, measured at the same",
    "commit. Stages are timed inside the recorded step.",
    "*Waited* is how long a step waited for pictures. Shares are of the rates that the same run",
    "measured for an 8192x8192 bf16 matrix product and for a copy of 2 GiB; the bytes of a step",
    "are counted as every operand and result of convolutions and batch norms, once. The case",
    "with files reads JPEG files while earlier steps run. First steps came while other cases",
    "were compiled beside them.",
)


def cases() -> dict[str, Case]:
    """Everything that is measured."""
    from fullmatch.algorithms import algorithm, names
    from fullmatch.experiment.settings import display_name

    plain: dict[str, Case] = {
        display_name(algorithm(name)): ("cifar10", name, ()) for name in names()
    }
    return {**plain, **LARGER}


class Turn:
    """Says that all is compiled, and waits until the device is ours."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def __enter__(self) -> None:
        self.pipe.send(READY)
        self.pipe.recv()

    def __exit__(self, *_: object) -> None:
        pass


def measure(pipe: Connection, case: Case) -> None:
    """Bench one case in a process of its own; sends the figures, or what went wrong."""
    import numpy as np

    from fullmatch.data.sources import picture_files
    from fullmatch.experiment.bench import measure_speed
    from fullmatch.experiment.settings import resolve

    data, algorithm, settings = case
    try:
        with tempfile.TemporaryDirectory() as place:
            if data == FILES:
                picture_files.MAX_BYTES_IN_MEMORY = 0
                data = str(photographs(Path(place)))
            if algorithm.removeprefix("full-") == "semco":
                embeddings = Path(place) / "embeddings.npy"
                np.save(embeddings, np.random.default_rng(0).normal(size=(10, 300)))
                settings = (*settings, f"algorithm.embeddings={embeddings}")
            config = resolve(data=data, algorithm=algorithm, assignments=settings)
            result = measure_speed(config, exclusive=Turn(pipe))
            pipe.send(result.to_table() | {"data": case[0]})
    except Exception:
        pipe.send(traceback.format_exc())


def photographs(place: Path, count: int = 1000, side: int = 224) -> Path:
    """JPEG files as large as photographs of that size are: smooth colours and a little noise."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(count):
        small = Image.fromarray(random.integers(0, 256, (14, 14, 3), np.uint8))
        smooth = np.asarray(small.resize((side, side), Image.Resampling.BICUBIC))
        pixels = np.clip(smooth + random.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8)
        folder = place / (f"labeled/class {number % 10}" if number < 100 else "unlabeled")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=90)
    return place


def measured(named: Iterable[tuple[str, Case]], processes: int) -> Iterator[tuple[str, Any]]:
    """Figures of each case, or the text of an error, as they come.

    So many cases compile side by side; whichever is ready is timed at once, while the others are
    stopped.
    """
    context = multiprocessing.get_context("spawn")
    waiting = iter(named)
    begun: dict[Connection, tuple[str, BaseProcess]] = {}

    def begin(count: int) -> None:
        for name, case in islice(waiting, count):
            ours, theirs = context.Pipe()
            process = context.Process(target=measure, args=(theirs, case), daemon=False)
            process.start()
            theirs.close()
            begun[ours] = (name, process)

    begin(processes)
    while begun:
        pipe = cast(Connection, wait(list(begun))[0])
        name, process = begun.pop(pipe)
        said = received(pipe)
        if said == READY:
            others = [other for _, other in begun.values()]
            with held(others):
                pipe.send("yours")
                said = received(pipe)
        process.join()
        begin(1)
        yield name, said


@contextmanager
def held(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Stops the processes, lets the device finish what they sent, and lets them go on after."""
    for process in processes:
        send(process, signal.SIGSTOP)
    time.sleep(SETTLE)
    try:
        yield
    finally:
        for process in processes:
            send(process, signal.SIGCONT)


def send(process: BaseProcess, what: signal.Signals) -> None:
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, what)


def received(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "the process died"


def known() -> dict[tuple[str, str], dict[str, Any]]:
    """The newest line of every case and device."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {(row["case"], row["device"]): row for row in rows}


def page(rows: list[dict[str, Any]]) -> str:
    lines = ["# Steps a second", "", *INTRODUCTION]
    for device in sorted({row["device"] for row in rows}):
        mine = sorted((row for row in rows if row["device"] == device), key=lambda row: row["case"])
        lines += [
            "",
            f"## {device}",
            "",
            "| case | images a step | steps/s | cost beside fixmatch "
            "| augmentation, forward, backward, update, ms | waited, ms | matrix peak "
            "| memory peak | GiB | first step, s | date, commit |",
            "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
        ]
        lines += [line(row, cost(row, mine)) for row in mine]
    return "\n".join(lines) + "\n"


def cost(row: dict[str, Any], beside: Sequence[dict[str, Any]]) -> str:
    """How many times as long as FixMatch's a step takes, on the same data and labels and commit."""
    keys = ("data", "model", "labeled_images", "commit")
    for other in beside:
        if other["case"] == "fixmatch" and all(other[key] == row[key] for key in keys):
            return f"{other['steps_per_second'] / row['steps_per_second']:.2f}"
    return "-"


def line(row: dict[str, Any], cost: str) -> str:
    spent = row["milliseconds"]
    stages = ", ".join(
        f"{spent[stage]:.2f}" for stage in ("augmentation", "forward", "backward", "update")
    )
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


def main(words: Sequence[str] | None = None) -> None:
    import torch

    from fullmatch.errors import did_you_mean
    from fullmatch.experiment.build import device_name
    from fullmatch.reproduce.provenance import current_code

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8, help="cases compiled side by side")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="as named in engine.md")
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--commit", help="of the code, where there is no git to ask")
    options = parser.parse_args(words)
    everything = cases()
    for name in options.only or ():
        if name not in everything:
            parser.error(f"unknown case {name!r}{did_you_mean(name, everything)}")
    if options.processes < 1:
        parser.error(f"--processes is {options.processes}, expected 1 or more")
    device = device_name(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    code = current_code()
    commit = options.commit or (code.commit or "unknown")[:7] + " and changes" * bool(code.dirty)
    wanted = options.only or list(everything)
    if not options.again:
        done = {name for name, where in known() if where == device}
        wanted = [name for name in wanted if name not in done]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, row in measured([(name, everything[name]) for name in wanted], options.processes):
        if isinstance(row, str):
            print(f"{name}: {row}", flush=True)
            continue
        row |= {"case": name, "date": str(date.today()), "commit": commit}
        with LEDGER.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(row) + "\n")
        print(f"{name:34} {row['steps_per_second']:7.1f} steps/s", flush=True)
    if not wanted:
        print(f"nothing to measure: all is known of {device}; --again measures anew")
    PAGE.write_text(page(list(known().values())), encoding="utf-8")


if __name__ == "__main__":
    main()
