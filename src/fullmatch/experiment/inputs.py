"""What a run is given: its pictures, the labels it may see, and where they lie."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import FileStore, ImageStore, SemiDataset, Source, Split, TensorStore
from fullmatch.data.quality.fingerprints import once
from fullmatch.data.stores.base import evenly
from fullmatch.errors import UserError, many

SAMPLE = 1000  # pictures whose contents are compared when a run goes on


def load_source(config: ExperimentConfig) -> Source:
    root = Path(config.data.root) if config.data.root else None
    return data.load(config.data.name, root=root, size=config.data.size)


def split_of(config: ExperimentConfig, source: Source) -> Split | None:
    """The labels a run may see: a file, a draw by seed, or, for own pictures, all there are."""
    if config.data.split:
        split, asked = Split.load(Path(config.data.split)), config.data.labels
        if asked is not None and asked != len(split.labeled):
            raise UserError(
                f"data.split {config.data.split} keeps {many(split.labeled, 'label')}, and "
                f"data.labels asks for {asked}; leave labels out, or draw so many by seed: "
                "--set data.split=none"
            )
        return split
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
    """Changes with the labels, with which are used, with the pictures, and with the test.

    The first third knows labels and sizes only, the second the pictures to learn from. Older
    checkpoints kept no more: what they kept is still accepted by itself, since nothing speaks
    against those runs.
    """
    found = hashlib.sha256(repr((dataset.classes, dataset.images.shape)).encode())
    for part in (dataset.labels, dataset.labeled):
        found.update(part.cpu().numpy().tobytes())
    rest = hashlib.sha256(repr(hash_of_test(dataset)).encode())
    rest.update(dataset.unlabeled.cpu().numpy().tobytes())
    if dataset.test_labels is not None:
        rest.update(dataset.test_labels.cpu().numpy().tobytes())
    return found.hexdigest()[:16] + pictures_hash(dataset.images) + rest.hexdigest()[:16]


def refuse_changed(dataset: SemiDataset, found: str, known: str, when: str) -> None:
    """Nothing goes on with other pictures than it began with; older runs know less of them."""
    if not found.startswith(known):
        raise changed(dataset, when)


def changed(dataset: SemiDataset, when: str) -> UserError:
    return UserError(
        f"the pictures or labels of {dataset.name} are not what they were when {when}; "
        "put them back, or start a new run"
    )


def hash_of_test(source: Source) -> str | None:
    """Of somebody's own test pictures; those of a benchmark are known by its name."""
    return None if source.benchmark or source.test is None else files_hash(source.test)


def files_hash(images: ImageStore) -> str:
    """The same at every size that files are learned at: their names, sizes, and some contents."""
    paths: tuple[str, ...] = getattr(images, "paths", ())
    if not paths:
        return pictures_hash(images)
    try:
        sizes = [(os.path.basename(path), os.path.getsize(path)) for path in paths]
        found = hashlib.sha256(repr(sizes).encode())
        for at in evenly(len(paths), SAMPLE).tolist():
            found.update(Path(paths[at]).read_bytes())
    except OSError as error:
        raise UserError(
            f"cannot read {error.filename}: {error.strerror}; put it back, and try again"
        ) from None
    return found.hexdigest()[:16]


def pictures_hash(images: ImageStore) -> str:
    """Of up to `SAMPLE` evenly spread pictures: their pixels, or the sizes of files on disk."""
    if isinstance(images, TensorStore):
        return pixels_hash_once(images)
    if not isinstance(images, FileStore):
        return pixels_hash(images)
    # These are many: decoding even some would take long. Not their folder, which may be written in
    # many ways. Looked at every time, since files may change.
    found = hashlib.sha256(repr([os.path.basename(path) for path in images.paths]).encode())
    index = evenly(len(images), SAMPLE).tolist()
    found.update(repr([os.path.getsize(images.paths[at]) for at in index]).encode())
    return found.hexdigest()[:16]


def pixels_hash(images: ImageStore) -> str:
    found = hashlib.sha256()
    index = evenly(len(images), SAMPLE)
    for start in range(0, len(index), 100):
        found.update(images.read(index[start : start + 100]).cpu().numpy().tobytes())
    return found.hexdigest()[:16]


pixels_hash_once = once(pixels_hash)  # for what is in memory, and stays as it is
