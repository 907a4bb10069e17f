"""Semi-supervised image classification: FullMatch and its peers, in PyTorch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullmatch.estimator import FullMatchClassifier as FullMatchClassifier
    from fullmatch.experiment.classifier import Classifier as Classifier
    from fullmatch.losses import FullMatchLoss as FullMatchLoss

__version__ = "0.2.0.dev0"

# Imported when they are asked for: torch takes seconds, and `fullmatch --help` needs none of it.
_HOMES = {
    "Classifier": "experiment.classifier",
    "FullMatchClassifier": "estimator",
    "FullMatchLoss": "losses",
}

__all__ = ["Classifier", "FullMatchClassifier", "FullMatchLoss"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
