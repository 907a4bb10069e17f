"""The inputs of a run: its pictures, the labels it may use, and where they are."""

from dataclasses import dataclass, replace
from pathlib import Path

from fullmatch import data
from fullmatch.config import DataConfig, ExperimentConfig
from fullmatch.data import SemiDataset, Source, Split
from fullmatch.data.dataset import clean_class_name
from fullmatch.data.open_set import hide_classes
from fullmatch.data.quality.cleaning import clean_dataset
from fullmatch.data.sources.places import is_table, make_absolute
from fullmatch.data.split_files import read_positions, use_positions
from fullmatch.data.splits import count_long_tail, draw_unlabeled
from fullmatch.data.stores.features import FeatureStore
from fullmatch.errors import UserError, did_you_mean, pluralize
from fullmatch.experiment.feature_pass import FrozenFeatures, PassOptions, compute_features
from fullmatch.experiment.frozen_model import FrozenModel, load_frozen_model
from fullmatch.experiment.given_features import embed_given, fit_given_model
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
    config = with_unknown_classes(config)
    source = load_source(config) if source is None else hide_unknown_classes(config, source)
    check_unknown_classes(config, source)
    split = choose_split(config, source)
    config = with_absolute_paths(config, split)
    return config, RunInputs(source, split, prepare_dataset(config, source, split))


def read_inputs(
    folder: RunFolder, config: ExperimentConfig, source: Source | None = None
) -> RunInputs:
    """The data of a run that has begun, with the split in its folder."""
    source = load_source(config) if source is None else hide_unknown_classes(config, source)
    exists = folder.split.exists()
    split = Split.load(folder.split) if exists else choose_split(config, source)
    return RunInputs(source, split, prepare_dataset(config, source, split))


def load_source(config: ExperimentConfig) -> Source:
    root = Path(config.data.root) if config.data.root else None
    return data.load(
        config.data.name,
        root=root,
        size=config.data.size,
        unknown_classes=config.data.unknown_classes,
    )


def hide_unknown_classes(config: ExperimentConfig, source: Source) -> Source:
    """The same for a source that is loaded already."""
    return hide_classes(source, config.data.unknown_classes)


def with_unknown_classes(config: ExperimentConfig) -> ExperimentConfig:
    """A new run's config with the unknown classes of its split file, if it has one."""
    names = tuple(map(clean_class_name, config.data.unknown_classes))
    config = replace(config, data=replace(config.data, unknown_classes=names))
    path = config.data.split
    if not path or read_positions(Path(path)) is not None:
        return config
    split = Split.load(Path(path))
    if names and set(names) != set(split.unknown_classes):
        theirs = ", ".join(split.unknown_classes)
        raise UserError(
            f"data.unknown_classes names {', '.join(names)}, but data.split {path} has "
            f"{f'the unknown classes {theirs}' if theirs else 'no unknown classes'}; leave one of "
            "the two settings out"
        )
    return replace(config, data=replace(config.data, unknown_classes=split.unknown_classes))


def check_unknown_classes(config: ExperimentConfig, source: Source) -> None:
    """`UserError` for a name that is not a class."""
    for name in config.data.unknown_classes:
        if name not in source.unknown_classes:
            hint = did_you_mean(name, source.classes)
            raise UserError(
                f"data.unknown_classes names {name!r}, which is not a class of {source.name} "
                f"({', '.join(source.classes[:10])}{', ...' if source.num_classes > 10 else ''})"
                f"{hint}"
            )


def prepare_dataset(config: ExperimentConfig, source: Source, split: Split | None) -> SemiDataset:
    dataset = replace(SemiDataset.from_source(source, split), balance=config.data.balance)
    return clean_dataset(dataset, flip=config.data.flip)


def choose_split(config: ExperimentConfig, source: Source) -> Split | None:
    """The labels a run may use: a file, a draw by seed, or, for own pictures, all there are."""
    options = config.data
    if options.split:
        return load_split(Path(options.split), config, source)
    chosen = (options.labels, options.unlabeled, options.unlabeled_imbalance)
    if not source.benchmark and options.imbalance == 1 and chosen == (None, None, None):
        return None
    split = replace(draw_labels(config, source), unknown_classes=source.unknown_classes)
    if options.unlabeled is None and options.unlabeled_imbalance is None:
        return split
    return draw_unlabeled(
        split, source.labels, source.num_classes, options.unlabeled, options.unlabeled_imbalance
    )


def draw_labels(config: ExperimentConfig, source: Source) -> Split:
    """A draw by seed, or all labels there are, however uneven the classes."""
    options, seed = config.data, config.data.split_seed
    seed = config.seed if seed is None else seed
    labeled = (source.labels >= 0).nonzero().flatten()
    if options.imbalance == 1 and options.labels in (None, len(labeled)):
        return Split(
            dataset=source.name,
            labels=len(labeled),
            seed=seed,
            images=len(source.labels),
            labeled=tuple(labeled.tolist()),
            targets=tuple(source.labels[labeled].tolist()),
        )
    most = count_long_tail(source.labels, source.num_classes, options.imbalance)
    return data.draw_split(
        source.labels,
        most if options.labels is None else options.labels,
        seed,
        source.num_classes,
        source.name,
        classes=source.classes,
        imbalance=options.imbalance,
    )


def load_split(path: Path, config: ExperimentConfig, source: Source) -> Split:
    """A split file, which must fit what the config says about labels and unlabeled images."""
    options, positions = config.data, read_positions(path)
    if positions is None:
        split = Split.load(path)
    else:
        split = use_positions(path, positions, source, config.seed)
    if options.labels is not None and options.labels != len(split.labeled):
        raise UserError(
            f"data.split {path} keeps {pluralize(split.labeled, 'label')}, but data.labels asks "
            f"for {options.labels}; leave labels out, or draw that many by seed: "
            "--set data.split=none"
        )
    unlabeled = None if split.unlabeled is None else len(split.unlabeled)
    for name, ours, theirs in (
        ("imbalance", None if options.imbalance == 1 else options.imbalance, split.imbalance),
        ("unlabeled", options.unlabeled, unlabeled),
        ("unlabeled_imbalance", options.unlabeled_imbalance, split.unlabeled_imbalance),
    ):
        if ours is not None and ours != theirs:
            raise UserError(
                f"data.split {path} was drawn with data.{name} = {str(theirs).lower()}, but the "
                f"config says {ours}; leave data.{name} out, or draw by seed: "
                "--set data.split=none"
            )
    return split


def with_absolute_paths(config: ExperimentConfig, split: Split | None) -> ExperimentConfig:
    """A config that repeats the run from any working directory."""
    data_config, model = with_drawn_numbers(config.data, split), config.model
    return replace(
        config,
        data=replace(
            data_config,
            name=absolute_data(data_config.name),
            root=absolute(data_config.root) if data_config.root else None,
            split=absolute(data_config.split) if data_config.split else None,
            unknown_classes=(
                data_config.unknown_classes if split is None else split.unknown_classes
            ),
        ),
        model=replace(
            model,
            start=absolute(model.start) if model.start else None,
            weights=absolute(model.weights) if model.weights else None,
        ),
    )


def with_drawn_numbers(options: DataConfig, split: Split | None) -> DataConfig:
    """The settings with what a split was drawn with, which they may have left open."""
    if split is None:
        return options
    return replace(
        options,
        labels=len(split.labeled),
        imbalance=split.imbalance,
        unlabeled=None if split.unlabeled is None else len(split.unlabeled),
        unlabeled_imbalance=split.unlabeled_imbalance,
    )


def absolute_data(name: str) -> str:
    """The name of a benchmark, or where the user's own data is."""
    if name in data.DATASETS:
        return name
    if is_table(name):
        return make_absolute(name)
    return absolute(name) if Path(name).expanduser().exists() else name


def absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def load_body(inputs: RunInputs, config: ExperimentConfig) -> FrozenModel:
    """The frozen body that a config names, for the pictures of a run."""
    model, dataset = config.model, inputs.dataset
    if isinstance(dataset.images, FeatureStore):
        return fit_given_model(dataset.images)
    weights = Path(model.weights) if model.weights else None
    side = min(dataset.images.shape[1:])
    return load_frozen_model(
        model.name, dataset.appearance, side, weights, model.sizes, dataset.classes
    )


def add_features(
    inputs: RunInputs,
    config: ExperimentConfig,
    options: PassOptions,
    body: FrozenModel | None = None,
) -> tuple[RunInputs, list[str]]:
    """The inputs with features where the body is frozen, and notes for the user."""
    if config.model.body == "trained" or inputs.features is not None:
        return inputs, []
    dataset, model = inputs.dataset, config.model
    frozen = load_body(inputs, config) if body is None else body
    if isinstance(dataset.images, FeatureStore):
        test = dataset.test if isinstance(dataset.test, FeatureStore) else None
        return replace(inputs, features=embed_given(frozen, dataset.images, test)), []
    device = choose_device()
    features, notes = compute_features(
        frozen,
        dataset.images,
        dataset.test,
        device,
        replace(options, crops=model.crops, seed=config.seed, views=config.augment),
    )
    return replace(inputs, features=features), notes
