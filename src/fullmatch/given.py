"""What a run is given: its pictures, the labels it may see, and where they lie."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import torch

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import FileStore, ImageStore, SemiDataset, Source, Split

SAMPLE = 1000  # pictures whose contents are compared when a run goes on


def load_source(config: ExperimentConfig) -> Source:
    root = Path(config.data.root) if config.data.root else None
    return data.load(config.data.name, root=root, size=config.data.size)


def split_of(config: ExperimentConfig, source: Source) -> Split | None:
    """The labels a run may see: a file, a draw by seed, or, for own pictures, all there are."""
    if config.data.split:
        return Split.load(Path(config.data.split))
    if not source.benchmark and config.data.labels is None:
        return None
    seed = config.seed if config.data.split_seed is None else config.data.split_seed
    known = (source.labels >= 0).nonzero().flatten()
    count = len(known) if config.data.labels is None else config.data.labels
    if count == len(known):  # all there are, however uneven the classes
        labeled, targets = tuple(known.tolist()), tuple(source.labels[known].tolist())
        return Split(source.name, count, seed, len(source.labels), labeled, targets)
    return data.draw(
        source.labels, count, seed, source.num_classes, source.name, classes=source.classes
    )


def said_in_full(config: ExperimentConfig, split: Split | None) -> ExperimentConfig:
    """The config alone repeats the run, from whatever folder it is asked for."""
    found = config.data
    own = found.name not in data.DATASETS and Path(found.name).expanduser().exists()
    located = replace(
        found,
        name=absolute(found.name) if own else found.name,
        root=absolute(found.root) if found.root else None,
        split=absolute(found.split) if found.split else None,
        labels=found.labels if split is None else len(split.labeled),
    )
    model = config.model
    model = replace(
        model,
        start=absolute(model.start) if model.start else None,
        weights=absolute(model.weights) if model.weights else None,
    )
    return replace(config, data=located, model=model)


def absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def hash_of(dataset: SemiDataset) -> str:
    """Changes with the labels, with which are used, and with the pictures.

    The first half knows labels and sizes only, which is all that older checkpoints kept: it is
    still accepted by itself, since nothing speaks against those runs.
    """
    found = hashlib.sha256(repr((dataset.classes, dataset.images.shape)).encode())
    for part in (dataset.labels, dataset.labeled):
        found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()[:16] + pictures_hash(dataset.images)


def pictures_hash(images: ImageStore) -> str:
    """Of up to `SAMPLE` evenly spread pictures: their pixels, or the sizes of files on disk."""
    found = hashlib.sha256()
    count = min(len(images), SAMPLE)
    index = torch.linspace(0, len(images) - 1, count, dtype=torch.float64).round().long()
    if isinstance(images, FileStore):  # these are many: decoding even some would take long
        # Not their folder, which may be written in many ways.
        found.update(repr([os.path.basename(path) for path in images.paths]).encode())
        found.update(repr([os.path.getsize(images.paths[at]) for at in index.tolist()]).encode())
    else:
        for start in range(0, count, 100):
            found.update(images.read(index[start : start + 100]).cpu().numpy().tobytes())
    return found.hexdigest()[:16]
