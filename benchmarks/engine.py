"""Steps a second of every algorithm, and of the larger networks, on the GPU at hand.

    python benchmarks/engine.py [--processes 8] [--only CASE ...] [--again] [--commit HASH]

Compiles several cases side by side and times them one after another. Appends to
docs/results/engine.jsonl what is not there yet for this device (`--again` measures anew, and the
newest line counts) and writes docs/results/engine.md from it.
"""

import argparse
import json
import multiprocessing
import tempfile
import traceback
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
LEDGER, PAGE = RESULTS / "engine.jsonl", RESULTS / "engine.md"
Case = tuple[str, str, tuple[str, ...]]  # data set, algorithm, settings
LARGER: dict[str, Case] = {
    "fullmatch, weak view apart": ("cifar10", "fullmatch", ("training.weak_gradient=false",)),
    "fullmatch, wrn-28-8, 100 classes": ("cifar100", "fullmatch", ()),
    "fullmatch, wrn-37-2, 96x96": ("stl10", "fullmatch", ()),
}


def cases() -> dict[str, Case]:
    """Everything that is measured."""
    from fullmatch.algorithms import algorithm, names
    from fullmatch.settings import display_name

    plain: dict[str, Case] = {
        display_name(algorithm(name)): ("cifar10", name, ()) for name in names()
    }
    return {**plain, **LARGER}


class Turn:
    """Says that all is compiled, and waits until the device is ours."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def __enter__(self) -> None:
        self.pipe.send("ready")
        self.pipe.recv()

    def __exit__(self, *_: object) -> None:
        pass


def measure(pipe: Connection, case: Case) -> None:
    """Bench one case in a process of its own; sends the figures, or what went wrong."""
    import numpy as np

    from fullmatch.bench import bench
    from fullmatch.settings import resolve

    data, algorithm, settings = case
    try:
        with tempfile.TemporaryDirectory() as place:
            if algorithm.removeprefix("full-") == "semco":
                embeddings = Path(place) / "embeddings.npy"
                np.save(embeddings, np.random.default_rng(0).normal(size=(10, 300)))
                settings = (*settings, f"algorithm.embeddings={embeddings}")
            config = resolve(data=data, algorithm=algorithm, assignments=settings)
            pipe.send(bench(config, alone=Turn(pipe)))
    except Exception:
        pipe.send(traceback.format_exc())


def wave(named: list[tuple[str, Case]]) -> dict[str, Any]:
    """Figures of several cases, or the text of an error."""
    context = multiprocessing.get_context("spawn")
    begun = []
    for name, case in named:
        ours, theirs = context.Pipe()
        process = context.Process(target=measure, args=(theirs, case), daemon=False)
        process.start()
        theirs.close()
        begun.append((name, ours, process))
    found: dict[str, Any] = {}
    compiled = []
    for name, pipe, process in begun:
        said = received(pipe)
        if said == "ready":
            compiled.append((name, pipe, process))
        else:
            found[name] = said
    for name, pipe, process in compiled:
        pipe.send("yours")
        found[name] = received(pipe)
        process.join()
    return found


def received(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "the process died"


def known() -> dict[tuple[str, str], dict[str, Any]]:
    """The newest line of every case and device."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["case"], row["device"]): row for row in rows}


def page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Steps a second",
        "",
        "Written by `python benchmarks/engine.py`. `fullmatch bench` on noise in the shape of",
        "CIFAR-10 (64 labeled and 448 unlabeled images a step, wrn-28-2) unless the case says",
        "otherwise, with every setting at its default; median of three times 100 steps. Stages are",
        "timed inside the recorded step. Shares are of the rates that the same run measured for an",
        "8192x8192 bf16 matrix product and for a copy of 2 GiB; the bytes of a step are counted as",
        "every operand and result of convolutions and batch norms, once.",
    ]
    for device in sorted({row["device"] for row in rows}):
        mine = sorted((row for row in rows if row["device"] == device), key=lambda row: row["case"])
        base = next((r["steps_per_second"] for r in mine if r["case"] == "fixmatch"), None)
        lines += [
            "",
            f"## {device}",
            "",
            "| case | steps/s | cost beside fixmatch | augmentation, forward, backward, update, ms "
            "| matrix peak | memory peak | GiB | first step, s | date, commit |",
            "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |",
        ]
        for row in mine:
            spent = row["milliseconds"]
            same = row["data"] == "cifar10" and base is not None
            cost = f"{base / row['steps_per_second']:.2f}" if same else "-"
            stages = ("augmentation", "forward", "backward", "update")
            lines.append(
                f"| {row['case']} | {row['steps_per_second']:.1f} | {cost} "
                f"| {', '.join(f'{spent[stage]:.2f}' for stage in stages)} "
                f"| {100 * row.get('share_of_matrix_peak', 0):.0f} % "
                f"| {100 * row.get('share_of_memory_peak', 0):.0f} % "
                f"| {row.get('peak_memory_gib', 0):.1f} | {row['seconds_to_first_step']:.0f} "
                f"| {row['date']}, `{row['commit']}` |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch

    from fullmatch.assembly import device_name
    from fullmatch.reproduce.provenance import checkout

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8, help="cases compiled side by side")
    parser.add_argument("--only", nargs="+", choices=list(cases()))
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--commit", help="of the code, where there is no git to ask")
    options = parser.parse_args()
    device = device_name(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    commit = options.commit or (checkout()["commit"] or "unknown")[:7]
    wanted = options.only or list(cases())
    if not options.again:
        wanted = [name for name in wanted if (name, device) not in known()]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(wanted), options.processes):
        names = wanted[first : first + options.processes]
        found = wave([(name, cases()[name]) for name in names])
        with LEDGER.open("a", encoding="utf-8") as ledger:
            for name, row in found.items():
                if isinstance(row, str):
                    print(f"{name}: {row}", flush=True)
                    continue
                row |= {"case": name, "date": str(date.today()), "commit": commit}
                ledger.write(json.dumps(row) + "\n")
                print(f"{name:34} {row['steps_per_second']:7.1f} steps/s", flush=True)
    PAGE.write_text(page(list(known().values())), encoding="utf-8")


if __name__ == "__main__":
    main()
