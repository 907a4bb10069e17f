"""Every algorithm and every full- form on digits with 40 labels, seeds 0 to 2.

    python benchmarks/zoo_digits.py [--processes 2] [--only NAME ...]

Adds missing measurements to docs/results/digits.jsonl (remove the file to measure everything
again) and writes docs/results/digits.md from it.
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
LEDGER, PAGE, NOTES = (RESULTS / f"digits.{suffix}" for suffix in ("jsonl", "md", "notes.md"))


def measure(name: str, seed: int) -> dict[str, Any]:
    """Train one algorithm with one seed, on one thread."""
    import torch

    from fullmatch.experiment import settings
    from fullmatch.experiment import start as experiment
    from fullmatch.storage.run_folder import RunFolder

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        assignments = ["training.threads=1"]
        if name.removeprefix("full-") == "semco":
            embeddings = Path(folder) / "embeddings.npy"
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
        run = experiment.start(config, RunFolder(Path(folder) / "run", new=True))
        for _ in run.records():
            pass
        teacher = run.result.teacher
        assert teacher is not None
        return {
            "algorithm": name,
            "seed": seed,
            "steps": config.training.steps,
            "last": teacher.top1,
            "median_last_20": teacher.median_last_20,
            "seconds": round(time.perf_counter() - started, 1),
        }


def write_embeddings(path: Path, seed: int) -> None:
    """The mean labeled image of each class, in place of embeddings of class names."""
    import numpy as np

    from fullmatch import data

    source = data.load("digits")
    split = data.draw_split(source.labels, LABELS, seed, source.num_classes, source.name)
    labeled = list(split.labeled)
    assert isinstance(source.images, data.TensorStore)
    images = source.images.images[labeled].flatten(1).float()
    labels = source.labels[labeled]
    means = np.stack(
        [images[labels == label].mean(dim=0).numpy() for label in range(source.num_classes)]
    )
    np.save(path, means - means.mean(axis=0))


def read_rows() -> list[dict[str, Any]]:
    if not LEDGER.exists():
        return []
    return [json.loads(line) for line in LEDGER.read_text(encoding="utf-8").splitlines()]


def render_page(rows: list[dict[str, Any]], names: list[str]) -> str:
    """The table, best first, and the notes."""
    entries = []
    for name in names:
        runs = [row for row in rows if row["algorithm"] == name]
        if runs:
            percents = [100 * row["last"] for row in runs]
            deviation = f"{statistics.stdev(percents):.1f}" if len(percents) > 1 else "-"
            seconds = statistics.mean(row["seconds"] for row in runs)
            entries.append((statistics.mean(percents), deviation, len(percents), seconds, name))
    steps = {row["steps"] for row in rows}
    lines = [
        "# Digits, 40 labels: every algorithm",
        "",
        "Written by `python benchmarks/zoo_digits.py`. scikit-learn's digits, 4 labels per class,",
        "500 test images, wrn-10-1, seeds 0 to 2 (of the labels and of the training),",
        f"{', '.join(map(str, sorted(steps)))} steps. Final accuracy of the averaged model, in",
        "percent; nothing is chosen on the test images. Seconds are per seed on one CPU thread.",
        "",
        "| algorithm | mean | deviation | seeds | seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {mean:.1f} | {deviation} | {seeds} | {seconds:.0f} |"
            for mean, deviation, seeds, seconds, name in sorted(entries, reverse=True)
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
    done = {(row["algorithm"], row["seed"]) for row in read_rows()}
    missing = [(name, s) for s in SEEDS for name in options.only if (name, s) not in done]
    with ProcessPoolExecutor(options.processes) as pool, LEDGER.open("a") as ledger:
        runs = [pool.submit(measure, *each) for each in missing]
        for number, run in enumerate(as_completed(runs), start=1):
            row = run.result()
            ledger.write(json.dumps(row) + "\n")
            ledger.flush()
            percent, seconds = 100 * row["last"], row["seconds"]
            count = f"{number}/{len(missing)}"
            print(f"{count:>8}  {row['algorithm']:18} {row['seed']} {percent:.1f} {seconds:.0f} s")
    PAGE.write_text(render_page(read_rows(), names()), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
