"""Features with few labels: the estimator beside scikit-learn's, on five kinds of rows.

    python benchmarks/estimator_features.py [SEED ...]

Digits as rows of 64 numbers with 40 labels, texts made up of topics (TF-IDF) with 30, blobs and
overlapping clusters with 24 and 20, and, with 10, one cloud that a plane cuts in two: its unlabeled
rows say nothing about the classes. Every method gets the same training rows (three quarters, of
which so many are labeled) and is tested on the rest. Prints the mean test accuracy in percent over
the seeds (0 to 2 by default); ± is half the range.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from fullmatch import FullMatchClassifier

Array = NDArray[Any]
LABELS = {"digits": 40, "texts": 30, "blobs": 24, "clusters": 20, "cloud": 10}
METHODS = (
    "LogisticRegression",
    "LabelSpreading (rbf)",
    "LabelSpreading (knn)",
    "SelfTrainingClassifier",
    "FullMatchClassifier",
)


class Rows(NamedTuple):
    """Training rows, of which few are labeled (-1: not), and test rows."""

    train: Array
    labels: Array
    test: Array
    test_labels: Array


def make_texts(count: int = 1500, classes: int = 6, words: int = 2000) -> tuple[Array, Array]:
    """TF-IDF of texts whose words come from their class's topic and from a common vocabulary."""
    rng = np.random.default_rng(0)
    common = 1 / np.arange(1, words + 1) ** 1.05  # few words are frequent, as in any language
    topics = np.tile(common, (classes, 1))
    for topic in topics:
        own = rng.choice(np.arange(30, words), 150, replace=False)
        topic[own] *= np.exp(rng.normal(2.5, 0.6, 150))
    labels = rng.integers(0, classes, count)
    chances = topics / topics.sum(axis=1, keepdims=True) / 2 + common / common.sum() / 2
    lengths = rng.lognormal(np.log(60), 0.5, count).astype(int) + 5
    counts = [rng.multinomial(n, chances[k]) for n, k in zip(lengths, labels, strict=True)]
    return TfidfTransformer(sublinear_tf=True).fit_transform(np.array(counts)).toarray(), labels


def load_rows(name: str) -> tuple[Array, Array]:
    if name == "digits":
        rows, labels = load_digits(return_X_y=True)
    elif name == "texts":
        rows, labels = make_texts()
    elif name == "blobs":
        rows, labels = make_blobs(900, n_features=20, centers=6, cluster_std=5.0, random_state=1)
    elif name == "cloud":
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(900, 10))
        labels = (rows @ rng.normal(size=10) > 0).astype(int)
    else:
        rows, labels = make_classification(
            1500,
            n_informative=8,
            n_redundant=4,
            n_classes=4,
            n_clusters_per_class=1,
            random_state=0,
        )
    return rows, labels


def split(name: str, seed: int) -> Rows:
    """As many labels of every class, drawn by the seed."""
    rows, labels = load_rows(name)
    train, test, known, test_labels = train_test_split(
        rows, labels, test_size=0.25, random_state=seed, stratify=labels
    )
    few = np.full(len(known), -1)
    for label in np.unique(known):
        few[np.flatnonzero(known == label)[: LABELS[name] // len(np.unique(known))]] = label
    return Rows(train, few, test, test_labels)


def measure(method: str, rows: Rows, seed: int) -> float:
    """Test accuracy of one method with its default settings."""
    linear = LogisticRegression(max_iter=2000)
    if method == "LogisticRegression":
        known = rows.labels >= 0
        model: Any = linear.fit(rows.train[known], rows.labels[known])
    else:
        model = {
            "LabelSpreading (rbf)": LabelSpreading(),
            "LabelSpreading (knn)": LabelSpreading(kernel="knn"),
            "SelfTrainingClassifier": SelfTrainingClassifier(linear),
            "FullMatchClassifier": FullMatchClassifier(random_state=seed),
        }[method].fit(rows.train, rows.labels)
    return float(model.score(rows.test, rows.test_labels))


def table(names: Sequence[str], seeds: Sequence[int]) -> str:
    """A Markdown table: methods as rows, data sets as columns."""
    head = [f"{name}, {LABELS[name]} labels" for name in names]
    lines = [f"| | {' | '.join(head)} |", f"| --- | {' | '.join(['---'] * len(names))} |"]
    samples = {(name, seed): split(name, seed) for name in names for seed in seeds}
    for method in METHODS:
        cells = []
        for name in names:
            scores = [100 * measure(method, samples[name, seed], seed) for seed in seeds]
            cells.append(f"{np.mean(scores):.1f} ± {np.ptp(scores) / 2:.1f}")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(seeds: Sequence[int]) -> None:
    # LabelSpreading divides by zero for rows that are far from all others.
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(table(list(LABELS), seeds))


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or range(3))
