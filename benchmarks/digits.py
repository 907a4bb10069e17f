"""Digits with 40 labels: FullMatch beside the labels alone and scikit-learn's own methods.

    python benchmarks/digits.py [--seeds 0 1 2] [--only FullMatch ...]

500 images are held out for test; every method sees the same 40 labels of a seed.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from fullmatch import data
from fullmatch.experiment import run as experiment
from fullmatch.experiment import settings
from fullmatch.storage.run_folder import RunFolder

LABELS = 40
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def arrays(seed: int) -> Arrays:
    """Training images as rows, labels with -1 where hidden, test images, test labels."""
    source = data.load("digits")
    split = data.draw_split(source.labels, LABELS, seed, source.num_classes, source.name)
    hidden = np.full(len(source.labels), -1)
    kept = np.array(split.labeled)
    hidden[kept] = source.labels.numpy()[kept]
    rows = [store.images.flatten(1).numpy() / 255 for store in (source.images, source.test)]
    return rows[0], hidden, rows[1], source.test_labels.numpy()


def svm(seed: int) -> float:
    x, y, x_test, y_test = arrays(seed)
    return float(SVC(C=10).fit(x[y >= 0], y[y >= 0]).score(x_test, y_test))


def label_spreading(seed: int) -> float:
    x, y, x_test, y_test = arrays(seed)
    return float(LabelSpreading(kernel="knn", n_neighbors=7).fit(x, y).score(x_test, y_test))


def trained(algorithm: str) -> Callable[[int], float]:
    def accuracy(seed: int) -> float:
        config = settings.resolve(data="digits", labels=LABELS, algorithm=algorithm, seed=seed)
        with tempfile.TemporaryDirectory() as place:
            run = experiment.start(config, RunFolder(Path(place) / "run", new=True))
            for _ in run.records():
                pass
            return float(run.result["teacher"]["last"])

    return accuracy


METHODS: dict[str, Callable[[int], float]] = {
    "SVM on the labels": svm,
    "LabelSpreading (scikit-learn)": label_spreading,
    "the network on the labels": trained("supervised"),
    "FixMatch": trained("fixmatch"),
    "FullMatch": trained("fullmatch"),
    "FullFlex": trained("fullflex"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(METHODS), metavar="METHOD")
    options = parser.parse_args()
    seeds = options.seeds
    print(f"{'digits, 40 labels':32} {'mean':>6} {'sd':>5}  {'by seed':24} seconds a seed")
    for name in options.only:
        method = METHODS[name]
        found = []
        started = time.perf_counter()
        for seed in seeds:
            found.append(100 * method(seed))
        seconds = (time.perf_counter() - started) / len(seeds)
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        each = "  ".join(f"{one:.1f}" for one in found)
        print(f"{name:32} {statistics.mean(found):6.1f} {spread:5.1f}  {each:24} {seconds:.1f}")


if __name__ == "__main__":
    main()
