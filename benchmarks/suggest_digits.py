"""Are suggested labels worth more than random ones? Digits: 20 labels, then 20 more.

    python benchmarks/suggest_digits.py [SEED ...]

For each seed (0 to 4 by default), trains on 20 labels, adds 20 that the model suggests or, twice,
20 drawn at random, trains again from scratch, and prints test accuracies. Takes one or two minutes
per seed.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from fullmatch import data
from fullmatch.cli.commands.suggest import unlabeled_images
from fullmatch.data import Split
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.inference.suggestion import suggest_uncertain
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder

LABELS, MORE, STEPS = 20, 20, 500
DRAWS = 2


class Comparison(NamedTuple):
    """Test accuracy with the first labels, with suggested ones, and with random ones."""

    before: float
    suggested: float
    drawn: list[float]


def train(out: Path, seed: int, split: Path | None = None) -> float:
    """Test accuracy of the averaged model at the end of a run."""
    config = resolve(
        labels=LABELS if split is None else LABELS + MORE,
        steps=STEPS,
        seed=seed,
        assignments=[] if split is None else [f"data.split={split}"],
    )
    run = start(config, RunFolder.planned("digits", out))
    for _ in run.records():
        pass
    assert run.result.teacher is not None
    return run.result.teacher.top1


def write_larger_split(first: Split, more: Sequence[str], path: Path) -> Path:
    """Write a split that has more labels than the first one."""
    labels = data.load("digits").labels
    labeled = sorted([*first.labeled, *map(int, more)])
    targets = tuple(labels[labeled].tolist())
    Split("digits", len(labeled), first.seed, len(labels), tuple(labeled), targets).save(path)
    return path


def compare(seed: int) -> Comparison:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = train(folder / "first", seed)
        run, first = TrainedRun(folder / "first"), Split.load(folder / "first" / "split.json")
        unlabeled = unlabeled_images(run)
        names = unlabeled.names
        suggestions = suggest_uncertain(run, names, MORE, open_image=unlabeled.open_image)
        chosen = [each.name for each in suggestions.pictures]
        split = write_larger_split(first, chosen, folder / "more.json")
        suggested = train(folder / "more", seed, split)
        drawn = []
        for draw in range(DRAWS):
            sample = random.Random(100 * seed + draw).sample(names, MORE)
            split = write_larger_split(first, sample, folder / f"drawn-{draw}.json")
            drawn.append(train(folder / f"drawn-{draw}", seed, split))
        return Comparison(before, suggested, drawn)


def main(seeds: Sequence[int]) -> None:
    torch.set_num_threads(1)
    rows = []
    for seed in seeds:
        result = compare(seed)
        rows.append((result.before, result.suggested, statistics.mean(result.drawn)))
        before, suggested, *drawn = (
            f"{100 * accuracy:.1f}" for accuracy in (result.before, result.suggested, *result.drawn)
        )
        print(f"seed {seed}: {before} %, suggested {suggested}, random {', '.join(drawn)}")
    means = [100 * statistics.mean(column) for column in zip(*rows, strict=True)]
    print(f"mean: {means[0]:.1f} %, suggested {means[1]:.1f}, random {means[2]:.1f}")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or range(5))
