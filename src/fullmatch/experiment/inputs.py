"""The inputs of a run: its pictures, the labels it may use, and where they are."""

from dataclasses import dataclass, replace
from pathlib import Path

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset, Source, Split
from fullmatch.data.quality.cleaning import clean_dataset
from fullmatch.errors import UserError, many
from fullmatch.experiment.feature_pass import FrozenFeatures, PassOptions, compute_features
from fullmatch.experiment.frozen_model import FrozenModel, load_frozen_model
from fullmatch.experiment.machine import choose_device
from fullmatch.storage.run_folder import RunFolder


@dataclass(frozen=True)
class RunInputs:
    """Everything that a run is trained or measured on."""

    source: Source  # as read, before any pictures were left out
    split: Split | None  # None: all labels there are
    dataset: SemiDataset
    features: FrozenFeatures | None = None  # of a frozen body


def load_inputs(
    config: ExperimentConfig, source: Source | None = None
) -> tuple[ExperimentConfig, RunInputs]:
    """The data of a new run, and its config with every path and label count spelled out."""
    source = load_source(config) if source is None else source
    split = choose_split(config, source)
    config = with_absolute_paths(config, split)
    return config, RunInputs(source, split, prepare_dataset(config, source, split))


def read_inputs(
    folder: RunFolder, config: ExperimentConfig, source: Source | None = None
) -> RunInputs:
    """The data of a run that has begun, with the split in its folder."""
    source = load_source(config) if source is None else source
    exists = folder.split.exists()
    split = Split.load(folder.split) if exists else choose_split(config, source)
    return RunInputs(source, split, prepare_dataset(config, source, split))


def load_source(config: ExperimentConfig) -> Source:
    root = Path(config.data.root) if config.data.root else None
    return data.load(config.data.name, root=root, size=config.data.size)


def prepare_dataset(config: ExperimentConfig, source: Source, split: Split | None) -> SemiDataset:
    return clean_dataset(SemiDataset.from_source(source, split), flip=config.data.flip)


def choose_split(config: ExperimentConfig, source: Source) -> Split | None:
    """The labels a run may use: a file, a draw by seed, or, for own pictures, all there are."""
    if config.data.split:
        return load_split(Path(config.data.split), config.data.labels)
    if not source.benchmark and config.data.labels is None:
        return None
    seed = config.seed if config.data.split_seed is None else config.data.split_seed
    labeled = (source.labels >= 0).nonzero().flatten()
    count = len(labeled) if config.data.labels is None else config.data.labels
    if count == len(labeled):  # all there are, however uneven the classes
        targets = tuple(source.labels[labeled].tolist())
        return Split(source.name, count, seed, len(source.labels), tuple(labeled.tolist()), targets)
    return data.draw_split(
        source.labels, count, seed, source.num_classes, source.name, classes=source.classes
    )


def load_split(path: Path, labels: int | None) -> Split:
    """A split file, which must have as many labels as the config says, if it says so."""
    split = Split.load(path)
    if labels is not None and labels != len(split.labeled):
        raise UserError(
            f"data.split {path} keeps {many(split.labeled, 'label')}, but data.labels asks for "
            f"{labels}; leave labels out, or draw that many by seed: --set data.split=none"
        )
    return split


def with_absolute_paths(config: ExperimentConfig, split: Split | None) -> ExperimentConfig:
    """A config that repeats the run from any working directory."""
    data_config, model = config.data, config.model
    own = data_config.name not in data.DATASETS and Path(data_config.name).expanduser().exists()
    return replace(
        config,
        data=replace(
            data_config,
            name=absolute(data_config.name) if own else data_config.name,
            root=absolute(data_config.root) if data_config.root else None,
            split=absolute(data_config.split) if data_config.split else None,
            labels=data_config.labels if split is None else len(split.labeled),
        ),
        model=replace(
            model,
            start=absolute(model.start) if model.start else None,
            weights=absolute(model.weights) if model.weights else None,
        ),
    )


def absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def load_body(inputs: RunInputs, config: ExperimentConfig) -> FrozenModel:
    """The frozen body that a config names, for the pictures of a run."""
    model, dataset = config.model, inputs.dataset
    weights = Path(model.weights) if model.weights else None
    side = min(dataset.images.shape[1:])
    return load_frozen_model(model.name, dataset.appearance, side, weights)


def add_features(
    inputs: RunInputs,
    config: ExperimentConfig,
    options: PassOptions,
    body: FrozenModel | None = None,
) -> tuple[RunInputs, list[str]]:
    """The inputs with features where the body is frozen, and notes for the user."""
    if config.model.body != "frozen" or inputs.features is not None:
        return inputs, []
    dataset, model = inputs.dataset, config.model
    frozen = load_body(inputs, config) if body is None else body
    device = choose_device()
    features, notes = compute_features(
        frozen,
        dataset.images,
        dataset.test,
        device,
        replace(options, crops=model.crops, seed=config.seed),
    )
    return replace(inputs, features=features), notes
