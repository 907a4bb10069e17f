"""A run as figures need it: its name and curves, and for some figures its model and data."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.algorithms import algorithm
from fullmatch.config import ExperimentConfig, experiment_config
from fullmatch.errors import UserError, pluralize
from fullmatch.reproduce.entry import LedgerCurve, LedgerEntry
from fullmatch.reproduce.ledger import read_entry
from fullmatch.reproduce.names import method_name
from fullmatch.reproduce.recording import collect_curves
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_settings

if TYPE_CHECKING:
    from torch import Tensor

    from fullmatch.data import Source
    from fullmatch.experiment.classifier import Classifier


class FigureRun:
    """A run folder, or an entry of the ledger, which has only curves."""

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path, self.root = path, root
        self.entry: LedgerEntry | None = read_entry(path) if path.suffix == ".json" else None
        self.folder = RunFolder(path) if self.entry else RunFolder.existing(path)
        table = self.entry.config if self.entry else read_settings(self.folder).table
        self.config: ExperimentConfig = experiment_config(table, algorithm)
        self.label = method_name(table["algorithm"])

    @cached_property
    def curves(self) -> dict[str, LedgerCurve]:
        curves = self.entry.curves if self.entry else collect_curves(self.folder.read_records())
        if not curves:
            raise UserError(f"{self.path} has not logged anything yet; train it further")
        return curves

    @property
    def description(self) -> str:
        """Data, labels and steps."""
        data = self.config.data
        labels = "" if data.labels is None else f", {pluralize(data.labels, 'label')}"
        # Of a user's own pictures only the folder's name, not its whole path.
        name = Path(data.name).name
        return f"{name}{labels}, {pluralize(self.curves['loss'].steps[-1], 'step')}"

    @cached_property
    def device(self) -> str:
        if self.entry:
            return self.entry.device
        return self.folder.read_result().device if self.folder.finished else "an unknown device"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.entry.classes if self.entry else self.folder.read_result().classes

    def predictions(self) -> tuple["Tensor", "Tensor"]:
        """Probabilities and true classes of the test images."""
        import torch

        self.require_file(self.folder.predictions)
        saved = self.folder.read_predictions()
        assert saved is not None
        return torch.from_numpy(saved.probabilities).double(), torch.from_numpy(saved.labels)

    def classifier(self) -> "Classifier":
        from fullmatch.experiment.classifier import Classifier
        from fullmatch.experiment.settings import named_code

        return Classifier.load(self.require_file(self.folder.model), named_code(self.folder))

    def source(self) -> "Source":
        """The data, never downloaded: in `root`, where the run had it, or in the default folder."""
        from fullmatch import data

        config = self.config.data
        before = Path(config.root) if config.root and Path(config.root).exists() else None
        return data.load(
            config.name,
            root=self.root or before,
            size=config.size,
            download=False,
            unknown_classes=config.unknown_classes,
        )

    def require_file(self, path: Path) -> Path:
        """A file of the run folder; if it is not there, an error says what to do."""
        if self.entry:
            raise UserError(f"{self.path} has only curves; this figure needs the run folder itself")
        if path.exists():
            return path
        finished = path == self.folder.predictions and self.folder.finished
        if finished and self.folder.read_result().teacher is None:
            raise UserError(f"{self.path} had no test images, which this figure needs")
        raise UserError(
            f"{self.path} has no {path.name}; finish the run with: {self.folder.resume_command}"
        )


def describe_runs(runs: Sequence[FigureRun]) -> str:
    """The data, labels and steps of all runs, each description once."""
    return "; ".join(dict.fromkeys(run.description for run in runs))


def runs_with(runs: Sequence[FigureRun], metric: str, advice: str) -> list[FigureRun]:
    """The runs that logged a metric; if none did, an error says which runs do."""
    matching = [run for run in runs if metric in run.curves]
    if not matching:
        names = ", ".join(run.label for run in runs)
        raise UserError(f"none of the runs ({names}) logs {metric}; choose a run of {advice}")
    return matching
