"""A finished run, ready to use: its model, result, settings and pictures."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from fullmatch.config import ExperimentConfig
    from fullmatch.data import Source
    from fullmatch.experiment.classifier import Classifier


SHARED = "fullmatch.json"  # in the folder of a model from the hub, which has no pictures


class TrainedRun:
    """What every command that uses a trained model starts from; each part is read when needed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder.existing(path)
        self.result = self.folder.read_result()

    @property
    def temperature(self) -> float | None:
        """Of the calibration; None if the run is not calibrated."""
        return self.result.temperature

    @property
    def calibration_note(self) -> str:
        """Why confidences are not calibrated; empty if they are."""
        if self.temperature is not None:
            return ""
        calibration = self.result.calibration
        reason = calibration.note if calibration else ""
        return f"confidences are not calibrated: {reason or 'no labels were held out for it'}"

    @cached_property
    def config(self) -> "ExperimentConfig":
        from fullmatch.experiment.settings import read_config

        return read_config(self.folder)

    @cached_property
    def classifier(self) -> "Classifier":
        from fullmatch.experiment.classifier import Classifier
        from fullmatch.experiment.settings import named_code

        classifier = Classifier.load(self.folder.model, named_code(self.folder))
        if classifier.classes != self.result.classes:
            reason = "its classes are not those of result.json"
            raise DamagedFile(self.folder.model, reason, self.folder.repair)
        return classifier

    @cached_property
    def source(self) -> "Source":
        """The pictures it was trained on, if they are still there; nothing is downloaded."""
        from fullmatch import data

        settings, classifier = self.config.data, self.classifier
        require_data(settings.name, self.folder.path)
        root = Path(settings.root) if settings.root else None
        source = data.load(
            settings.name,
            root=root,
            size=settings.size,
            download=False,
            unknown_classes=settings.unknown_classes,
        )
        if source.images.shape != classifier.image or source.classes != classifier.classes:
            raise UserError(
                f"{settings.name} is not what {self.folder.path} was trained on: it has "
                f"{len(source.classes)} classes and pictures of {source.images.shape}, the model "
                f"has {len(classifier.classes)} and {classifier.image}; restore the original data"
            )
        return source


def require_data(data: str, run: Path) -> None:
    """`UserError` if the pictures of a run are gone; loading them would suspect a typo."""
    from fullmatch.data import DATASETS
    from fullmatch.data.sources.places import data_exists

    if data not in DATASETS and (run / SHARED).exists():
        raise UserError(
            "the pictures that a shared model was trained on are not shared with it; name pictures "
            "or data of your own"
        )
    if data not in DATASETS and not data_exists(data):
        raise UserError(f"{data}, which {run} was trained on, is gone; put it back")
