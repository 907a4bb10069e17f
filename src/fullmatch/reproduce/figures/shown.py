"""A run as figures see it: its name, its curves, and, where they need more, its model and data."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullmatch.algorithms import algorithm
from fullmatch.config import ExperimentConfig, experiment_config, read_toml
from fullmatch.errors import UserError, many
from fullmatch.reproduce import ledger
from fullmatch.reproduce.ledger import Curve
from fullmatch.reproduce.names import label
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from torch import Tensor

    from fullmatch.data import Source
    from fullmatch.experiment.classifier import Classifier


class Shown:
    """A run folder, or an entry of the ledger, which has curves alone."""

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path, self.root = path, root
        self.entry: dict[str, Any] | None = ledger.read(path) if path.suffix == ".json" else None
        self.folder = RunFolder(path) if self.entry else RunFolder.existing(path)
        table = self.entry["config"] if self.entry else read_toml(self.folder.config)
        self.config: ExperimentConfig = experiment_config(table, algorithm)
        self.label = label(table["algorithm"])

    @cached_property
    def curves(self) -> dict[str, Curve]:
        found: dict[str, Curve]
        found = self.entry["curves"] if self.entry else ledger.curves(self.folder.records())
        if not found:
            raise UserError(f"{self.path} has not logged anything yet; train it further")
        return found

    @property
    def about(self) -> str:
        """Data, labels and steps in few words."""
        data = self.config.data
        labels = "" if data.labels is None else f", {many(data.labels, 'label')}"
        # Of somebody's own pictures the folder's name alone, not where it lies.
        name = Path(data.name).name
        return f"{name}{labels}, {many(int(self.curves['loss'][0][-1]), 'step')}"

    @cached_property
    def device(self) -> str:
        if self.entry:
            return str(self.entry["device"])
        if not self.folder.result.exists():
            return "an unknown device"
        return str(self.folder.read_result()["device"])

    def predictions(self) -> tuple["Tensor", "Tensor"]:
        """Probabilities and true classes of the test images."""
        from safetensors.torch import load_file

        saved = load_file(self.needed(self.folder.predictions))
        return saved["probabilities"].double(), saved["labels"]

    def classifier(self) -> "Classifier":
        from fullmatch.experiment.classifier import Classifier

        return Classifier.load(self.needed(self.folder.model))

    def source(self) -> "Source":
        """The data, never fetched: from `root`, from where the run had it, or the usual place."""
        from fullmatch import data

        config = self.config.data
        before = Path(config.root) if config.root and Path(config.root).exists() else None
        return data.load(config.name, root=self.root or before, size=config.size, download=False)

    def classes(self) -> tuple[str, ...]:
        if self.entry:
            return tuple(self.entry["classes"])
        result = self.folder.read_result()
        return tuple(result["classes"])

    def needed(self, path: Path) -> Path:
        if self.entry:
            raise UserError(
                f"{self.path} has curves alone; this figure needs the run folder itself"
            )
        if path.exists():
            return path
        finished = path == self.folder.predictions and self.folder.result.exists()
        if finished and "teacher" not in self.folder.read_result():
            raise UserError(f"{self.path} had no test images, and this figure shows them")
        raise UserError(
            f"{self.path} has no {path.name}; finish the run with: {self.folder.resume_command}"
        )


def told_apart(runs: Sequence[Shown]) -> Sequence[Shown]:
    """The same runs; where two have one label, their folders' names are added."""
    often = Counter(run.label for run in runs)
    for run in runs:
        if often[run.label] > 1:
            run.label = f"{run.label} ({run.path.resolve().name.removesuffix('.json')})"
    return runs


def about(runs: Sequence[Shown]) -> str:
    """What all of them are of; where they differ, everything that some are of."""
    return "; ".join(dict.fromkeys(run.about for run in runs))


def having(runs: Sequence[Shown], metric: str, who: str) -> list[Shown]:
    """The runs that logged a metric; an error that says which do where none did."""
    found = [run for run in runs if metric in run.curves]
    if not found:
        names = ", ".join(run.label for run in runs)
        raise UserError(f"none of the runs ({names}) logs {metric}; name a run of {who}")
    return found
