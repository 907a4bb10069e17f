"""Semi-supervised image classification: FullMatch and its peers, in PyTorch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullmatch.api.checking import CheckReport as CheckReport
    from fullmatch.api.checking import check as check
    from fullmatch.api.finished_run import FinishedRun as FinishedRun
    from fullmatch.api.finished_run import evaluate as evaluate
    from fullmatch.api.finished_run import load as load
    from fullmatch.api.finished_run import predict as predict
    from fullmatch.api.pages import ReportPage as ReportPage
    from fullmatch.api.pages import report as report
    from fullmatch.api.started_run import Training as Training
    from fullmatch.api.sweeping import sweep as sweep
    from fullmatch.api.training import resume as resume
    from fullmatch.api.training import start as start
    from fullmatch.api.training import train as train
    from fullmatch.errors import UserError as UserError
    from fullmatch.estimator import FullMatchClassifier as FullMatchClassifier
    from fullmatch.experiment.classifier import Classifier as Classifier
    from fullmatch.inference.evaluate import Evaluation as Evaluation
    from fullmatch.inference.prediction import Prediction as Prediction
    from fullmatch.losses import FullMatchLoss as FullMatchLoss
    from fullmatch.sweeps.table import SweepTable as SweepTable

__version__ = "0.2.0.dev0"

# Imported when they are asked for: torch takes seconds, and `fullmatch --help` needs none of it.
_HOMES = {
    "CheckReport": "api.checking",
    "Classifier": "experiment.classifier",
    "Evaluation": "inference.evaluate",
    "FinishedRun": "api.finished_run",
    "FullMatchClassifier": "estimator",
    "FullMatchLoss": "losses",
    "Prediction": "inference.prediction",
    "ReportPage": "api.pages",
    "SweepTable": "sweeps.table",
    "Training": "api.started_run",
    "UserError": "errors",
    "check": "api.checking",
    "evaluate": "api.finished_run",
    "load": "api.finished_run",
    "predict": "api.finished_run",
    "report": "api.pages",
    "resume": "api.training",
    "start": "api.training",
    "sweep": "api.sweeping",
    "train": "api.training",
}

__all__ = [
    "CheckReport",
    "Classifier",
    "Evaluation",
    "FinishedRun",
    "FullMatchClassifier",
    "FullMatchLoss",
    "Prediction",
    "ReportPage",
    "SweepTable",
    "Training",
    "UserError",
    "check",
    "evaluate",
    "load",
    "predict",
    "report",
    "resume",
    "start",
    "sweep",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
