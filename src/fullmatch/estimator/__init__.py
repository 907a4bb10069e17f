"""FullMatchClassifier, for scikit-learn: -1 in y means unlabeled."""

from fullmatch.estimator.classifier import FullMatchClassifier

__all__ = ["FullMatchClassifier"]
