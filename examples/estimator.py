"""Handwritten digits with four labels per class, with the scikit-learn estimator."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fullmatch.estimator import FullMatchClassifier


def compare(steps: int = 600, labels_per_class: int = 4) -> tuple[float, float]:
    """Accuracy of a linear model on the labels only, and of FullMatch with all digits."""
    pixels, digits = load_digits(return_X_y=True)
    train, test, train_digits, test_digits = train_test_split(
        pixels, digits, test_size=500, random_state=0, stratify=digits
    )
    labels = np.full(len(train), -1)  # unlabeled
    for digit in range(10):
        few = np.flatnonzero(train_digits == digit)[:labels_per_class]
        labels[few] = digit

    known = labels != -1
    linear = LogisticRegression(max_iter=2000).fit(train[known], labels[known])
    full = FullMatchClassifier(
        steps=steps,
        batch=20,
        image_shape=(8, 8),  # the data set has rows of 64 pixels
        pixel_range=(0, 16),
        flip=False,  # a mirrored 3 is not a 3
        settings=("training.ratio=3",),
    ).fit(train, labels)
    return linear.score(test, test_digits), full.score(test, test_digits)


if __name__ == "__main__":
    linear, fullmatch = compare()
    print(f"40 labels only: {linear:.1%}; with 1,257 unlabeled digits: {fullmatch:.1%}")
