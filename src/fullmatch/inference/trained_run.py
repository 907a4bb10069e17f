"""A finished run, read back: its model, what it says of itself, and its pictures."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from fullmatch.config import ExperimentConfig
    from fullmatch.data import Source
    from fullmatch.experiment.classifier import Classifier


class TrainedRun:
    """What every command that uses a trained model starts from."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder.existing(path)
        self.result = self.folder.read_result()

    @property
    def temperature(self) -> float | None:
        """Of the calibration; None where the run could not be calibrated."""
        found = self.result.get("temperature")
        return None if found is None else float(found)

    @property
    def uncalibrated(self) -> str:
        """A sentence that says why confidences are not calibrated; empty where they are."""
        if self.temperature is not None:
            return ""
        reason = self.result.get("calibration", {}).get("note")
        return f"confidences are not calibrated: {reason or 'no labels were held out for it'}"

    @cached_property
    def config(self) -> "ExperimentConfig":
        from fullmatch.experiment.settings import config_of

        return config_of(self.folder)

    @cached_property
    def classifier(self) -> "Classifier":
        from fullmatch.experiment.classifier import Classifier

        return Classifier.load(self.folder.model)

    @cached_property
    def source(self) -> "Source":
        """The pictures it was trained on, where they still are; nothing is downloaded."""
        from fullmatch import data

        asked = self.config.data
        refuse_gone(asked.name, self.folder.path)
        root = Path(asked.root) if asked.root else None
        source = data.load(asked.name, root=root, size=asked.size, download=False)
        if (
            source.images.shape != self.classifier.image
            or source.classes != self.classifier.classes
        ):
            raise UserError(
                f"{asked.name} is not what {self.folder.path} was trained on: it has "
                f"{len(source.classes)} classes and pictures of {source.images.shape}, the model "
                f"knows {len(self.classifier.classes)} and {self.classifier.image}"
            )
        return source


def refuse_gone(data: str, run: Path) -> None:
    """Pictures that were moved since the run; reading them would call that a mistyped name."""
    from fullmatch.data import DATASETS

    place = Path(data).expanduser()
    if data not in DATASETS and not place.exists():
        raise UserError(f"{place}, which {run} was trained on, is gone; put it back, or go there")
