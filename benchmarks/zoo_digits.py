"""Every algorithm and every full- form on digits with 40 labels, seeds 0 to 2.

    python benchmarks/zoo_digits.py [--processes 2] [--only NAME ...]

Appends to docs/results/digits.jsonl what is not there yet (remove the file to measure anew) and
writes docs/results/digits.md from it.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

SEEDS = (0, 1, 2)
LABELS, STEPS = 40, 800
RESULTS = Path(__file__).parents[1] / "docs" / "results"
LEDGER, PAGE, NOTES = (RESULTS / f"digits.{kind}" for kind in ("jsonl", "md", "notes.md"))


def measure(name: str, seed: int) -> dict[str, Any]:
    """Train one algorithm with one seed, on one thread."""
    import torch

    from fullmatch.experiment import run as experiment
    from fullmatch.experiment import settings
    from fullmatch.storage.run_folder import RunFolder

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        assignments = ["training.threads=1"]
        if name.removeprefix("full-") == "semco":
            embeddings = Path(place) / "embeddings.npy"
            write_embeddings(embeddings, seed)
            assignments.append(f"algorithm.embeddings={embeddings}")
        config = settings.resolve(
            data="digits",
            labels=LABELS,
            steps=STEPS,
            algorithm=name,
            seed=seed,
            assignments=assignments,
        )
        started = time.perf_counter()
        run = experiment.start(config, RunFolder(Path(place) / "run", new=True))
        for _ in run.records():
            pass
        teacher = run.result["teacher"]
        return {
            "algorithm": name,
            "seed": seed,
            "steps": config.training.steps,
            "last": teacher["last"],
            "median_last_20": teacher["median_last_20"],
            "seconds": round(time.perf_counter() - started, 1),
        }


def write_embeddings(path: Path, seed: int) -> None:
    """A stand-in for embeddings of class names: the mean labeled picture of each class."""
    import numpy as np

    from fullmatch import data

    source = data.load("digits")
    split = data.draw_split(source.labels, LABELS, seed, source.num_classes, source.name)
    kept = list(split.labeled)
    pictures = source.images.images[kept].flatten(1).float()
    labels = source.labels[kept]
    means = [pictures[labels == label].mean(dim=0) for label in range(source.num_classes)]
    centred = np.stack([mean.numpy() for mean in means])
    np.save(path, centred - centred.mean(axis=0))


def known() -> list[dict[str, Any]]:
    if not LEDGER.exists():
        return []
    return [json.loads(line) for line in LEDGER.read_text(encoding="utf-8").splitlines()]


def page(rows: list[dict[str, Any]], names: list[str]) -> str:
    """The table, best first, and what there is to say about it."""
    entries = []
    for name in names:
        found = [row for row in rows if row["algorithm"] == name]
        if found:
            shares = [100 * row["last"] for row in found]
            spread = f"{statistics.stdev(shares):.1f}" if len(shares) > 1 else "-"
            seconds = statistics.mean(row["seconds"] for row in found)
            entries.append((statistics.mean(shares), spread, len(shares), seconds, name))
    steps = {row["steps"] for row in rows}
    lines = [
        "# Digits, 40 labels: every algorithm",
        "",
        "Written by `python benchmarks/zoo_digits.py`. scikit-learn's digits, 4 labels a class,",
        "500 test images, wrn-10-1, seeds 0 to 2 (labels, start and order all follow the seed),",
        f"{', '.join(map(str, sorted(steps)))} steps. Accuracy of the averaged model at the end,",
        "in percent: nothing is chosen on test. Seconds of a seed on one CPU thread, for scale.",
        "",
        "| algorithm | mean | deviation | seeds | seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {mean:.1f} | {spread} | {seeds} | {seconds:.0f} |"
            for mean, spread, seeds, seconds, name in sorted(entries, reverse=True)
        ),
        "",
    ]
    notes = NOTES.read_text(encoding="utf-8") if NOTES.exists() else ""
    return "\n".join(lines) + (f"\n{notes}" if notes else "")


def main() -> None:
    from fullmatch.algorithms import names

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=names())
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    done = {(row["algorithm"], row["seed"]) for row in known()}
    wanted = [(n, s) for s in SEEDS for n in options.only if (n, s) not in done]
    with ProcessPoolExecutor(options.processes) as pool, LEDGER.open("a") as ledger:
        runs = {pool.submit(measure, *one): one for one in wanted}
        for number, run in enumerate(as_completed(runs), start=1):
            row = run.result()
            ledger.write(json.dumps(row) + "\n")
            ledger.flush()
            share, seconds = 100 * row["last"], row["seconds"]
            place = f"{number}/{len(wanted)}"
            print(f"{place:>8}  {row['algorithm']:18} {row['seed']} {share:.1f} {seconds:.0f} s")
    PAGE.write_text(page(known(), names()), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
