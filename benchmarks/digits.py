"""Digits with 40 labels: FullMatch beside baselines and scikit-learn's methods.

    python benchmarks/digits.py [--seeds 0 1 2] [--only FullMatch ...]

500 images are for testing; with a given seed every method has the same 40 labels.
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
from fullmatch.experiment import settings
from fullmatch.experiment import start as experiment
from fullmatch.storage.run_folder import RunFolder

LABELS = 40
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load_arrays(seed: int) -> Arrays:
    """Training images as rows, their labels (-1 where hidden), test images and test labels."""
    source = data.load("digits")
    split = data.draw_split(source.labels, LABELS, seed, source.num_classes, source.name)
    labels = np.full(len(source.labels), -1)
    labeled = np.array(split.labeled)
    labels[labeled] = source.labels.numpy()[labeled]
    assert source.test_labels is not None
    return rows_of(source.images), labels, rows_of(source.test), source.test_labels.numpy()


def rows_of(store: data.ImageStore | None) -> np.ndarray:
    """One row per image, with values from 0 to 1."""
    assert isinstance(store, data.TensorStore)
    return store.images.flatten(1).numpy() / 255


def score_svm(seed: int) -> float:
    x, y, x_test, y_test = load_arrays(seed)
    return float(SVC(C=10).fit(x[y >= 0], y[y >= 0]).score(x_test, y_test))


def score_label_spreading(seed: int) -> float:
    x, y, x_test, y_test = load_arrays(seed)
    return float(LabelSpreading(kernel="knn", n_neighbors=7).fit(x, y).score(x_test, y_test))


def score_network(algorithm: str) -> Callable[[int], float]:
    """A function that trains with a seed and returns the test accuracy."""

    def score(seed: int) -> float:
        config = settings.resolve(data="digits", labels=LABELS, algorithm=algorithm, seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            run = experiment.start(config, RunFolder(Path(folder) / "run", new=True))
            for _ in run.records():
                pass
            assert run.result.teacher is not None
            return run.result.teacher.top1

    return score


METHODS: dict[str, Callable[[int], float]] = {
    "SVM on the labels": score_svm,
    "LabelSpreading (scikit-learn)": score_label_spreading,
    "the network on the labels": score_network("supervised"),
    "FixMatch": score_network("fixmatch"),
    "FullMatch": score_network("fullmatch"),
    "FullFlex": score_network("fullflex"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(METHODS), metavar="METHOD")
    options = parser.parse_args()
    seeds = options.seeds
    print(f"{'digits, 40 labels':32} {'mean':>6} {'sd':>5}  {'by seed':24} seconds per seed")
    for name in options.only:
        method = METHODS[name]
        started = time.perf_counter()
        percents = [100 * method(seed) for seed in seeds]
        seconds = (time.perf_counter() - started) / len(seeds)
        mean = statistics.mean(percents)
        deviation = statistics.stdev(percents) if len(percents) > 1 else 0.0
        listed = "  ".join(f"{percent:.1f}" for percent in percents)
        print(f"{name:32} {mean:6.1f} {deviation:5.1f}  {listed:24} {seconds:.1f}")


if __name__ == "__main__":
    main()
