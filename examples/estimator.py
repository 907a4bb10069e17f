"""Handwritten digits with four labels per class, with the scikit-learn estimator.

First as pictures, then as rows of features, as one would have them of texts or sounds.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fullmatch.estimator import FullMatchClassifier


def compare(steps: int = 600, labels_per_class: int = 4) -> tuple[float, float, float]:
    """Accuracy of a linear model on the labels only, and of FullMatch on pictures and features."""
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
    pictures = FullMatchClassifier(
        steps=steps,
        batch=20,
        image_shape=(8, 8),  # the data set has rows of 64 pixels
        pixel_range=(0, 16),
        flip=False,  # a mirrored 3 is not a 3
        settings=("training.ratio=3",),
    ).fit(train, labels)
    features = FullMatchClassifier().fit(train, labels)  # without image_shape, rows are features
    for strategy in features.strategies_:
        print(f"{strategy.accuracy:.1%} on held-out labels: {strategy.name}")
    return (
        linear.score(test, test_digits),
        pictures.score(test, test_digits),
        features.score(test, test_digits),
    )


if __name__ == "__main__":
    linear, pictures, features = compare()
    print(f"40 labels only: {linear:.1%}")
    print(f"with 1,257 unlabeled digits, as pictures: {pictures:.1%}, as features: {features:.1%}")
