"""Are suggested labels worth more than random ones? Digits: 20 labels, then 20 more.

    python benchmarks/suggest_digits.py [SEED ...]

For each seed (0 to 4 unless given) trains on 20 labels, adds 20 that the model suggests or, twice,
20 drawn at random, trains anew from scratch, and prints test accuracies; a minute or two a seed.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from fullmatch import data
from fullmatch.cli.commands.suggest import unlabeled_images
from fullmatch.data import Split
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.inference.suggestion import suggest_uncertain
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder

LABELS, MORE, STEPS = 20, 20, 500
DRAWS = 2


def trained(out: Path, seed: int, split: Path | None = None) -> float:
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
    return float(run.result["teacher"]["last"])


def enlarged(first: Split, more: Sequence[str], path: Path) -> Path:
    """A split with more labels."""
    labels = data.load("digits").labels
    labeled = sorted([*first.labeled, *map(int, more)])
    targets = tuple(labels[labeled].tolist())
    Split("digits", len(labeled), first.seed, len(labels), tuple(labeled), targets).save(path)
    return path


def measured(seed: int) -> tuple[float, float, list[float]]:
    """Accuracy with the first labels, with suggested ones, and with random ones."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        before = trained(home / "first", seed)
        run, first = TrainedRun(home / "first"), Split.load(home / "first" / "split.json")
        unlabeled = unlabeled_images(run)
        names = unlabeled.names
        suggestions = suggest_uncertain(run, names, MORE, open_image=unlabeled.open_image)
        chosen = [each.name for each in suggestions.pictures]
        suggested = trained(home / "more", seed, enlarged(first, chosen, home / "more.json"))
        drawn = []
        for draw in range(DRAWS):
            some = random.Random(100 * seed + draw).sample(names, MORE)
            split = enlarged(first, some, home / f"drawn-{draw}.json")
            drawn.append(trained(home / f"drawn-{draw}", seed, split))
        return before, suggested, drawn


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = []
    for seed in map(int, sys.argv[1:] or range(5)):
        before, suggested, drawn = measured(seed)
        rows.append((before, suggested, statistics.mean(drawn)))
        shown = ", ".join(f"{100 * share:.1f}" for share in drawn)
        print(f"seed {seed}: {100 * before:.1f} %, suggested {100 * suggested:.1f}, random {shown}")
    before, suggested, random_ones = (
        100 * statistics.mean(column) for column in zip(*rows, strict=True)
    )
    print(f"mean: {before:.1f} %, suggested {suggested:.1f}, random {random_ones:.1f}")
