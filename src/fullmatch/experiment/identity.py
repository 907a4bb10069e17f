"""Fingerprints of pictures and labels: a run never continues with other data than it began with."""

import hashlib
import os
from pathlib import Path

from fullmatch.data import FileStore, ImageStore, SemiDataset, Source, TensorStore
from fullmatch.data.stores.image_store import cached_per_store, evenly_spaced
from fullmatch.errors import UserError

SAMPLE = 1000  # pictures whose contents are compared when a run is resumed


def hash_dataset(dataset: SemiDataset) -> str:
    """Changes with the labels, with which are used, with the pictures, and with the test set.

    The first third covers labels and sizes only, the second the training pictures. Older
    checkpoints have only these first parts, which are still accepted.
    """
    labels = hashlib.sha256(repr((dataset.classes, dataset.images.shape)).encode())
    for part in (dataset.labels, dataset.labeled):
        labels.update(part.cpu().numpy().tobytes())
    others = hashlib.sha256(repr(hash_test(dataset)).encode())
    others.update(dataset.unlabeled.cpu().numpy().tobytes())
    if dataset.test_labels is not None:
        others.update(dataset.test_labels.cpu().numpy().tobytes())
    if dataset.unknown_test is not None and not dataset.benchmark:
        others.update(hash_files(dataset.unknown_test).encode())
    return labels.hexdigest()[:16] + hash_pictures(dataset.images) + others.hexdigest()[:16]


def check_unchanged(dataset: SemiDataset, current: str, earlier: str, when: str) -> None:
    """Refuse other pictures than before; older runs know less about theirs."""
    if not current.startswith(earlier):
        raise changed_data(dataset, when)


def changed_data(dataset: SemiDataset, when: str) -> UserError:
    return UserError(
        f"the pictures or labels of {dataset.name} have changed since {when}; "
        "restore them, or start a new run"
    )


def hash_test(source: Source) -> str | None:
    """Of a user's own test pictures; those of a benchmark are identified by its name."""
    return None if source.benchmark or source.test is None else hash_files(source.test)


def hash_files(images: ImageStore) -> str:
    """Of names, sizes and some contents of files: the same at every picture size."""
    paths = images.paths
    if not paths:
        return hash_pictures(images)
    try:
        sizes = [(os.path.basename(path), os.path.getsize(path)) for path in paths]
        digest = hashlib.sha256(repr(sizes).encode())
        for at in evenly_spaced(len(paths), SAMPLE).tolist():
            digest.update(Path(paths[at]).read_bytes())
    except OSError as error:
        raise UserError(
            f"cannot read {error.filename}: {error.strerror}; restore it, then try again"
        ) from None
    return digest.hexdigest()[:16]


def hash_pictures(images: ImageStore) -> str:
    """Of up to `SAMPLE` evenly spaced pictures: their pixels, or the sizes of files on disk."""
    if isinstance(images, TensorStore):
        return hash_pixels_once(images)
    if not isinstance(images, FileStore):
        return hash_pixels(images)
    # Decoding even some of many files would take long. Without their folder, which can be written
    # in several ways. Computed every time, since files may change.
    digest = hashlib.sha256(repr([os.path.basename(path) for path in images.paths]).encode())
    index = evenly_spaced(len(images), SAMPLE).tolist()
    digest.update(repr([os.path.getsize(images.paths[at]) for at in index]).encode())
    return digest.hexdigest()[:16]


def hash_pixels(images: ImageStore) -> str:
    digest = hashlib.sha256()
    index = evenly_spaced(len(images), SAMPLE)
    for start in range(0, len(index), 100):
        digest.update(images.read(index[start : start + 100]).cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


hash_pixels_once = cached_per_store(hash_pixels)  # for images in memory, which do not change
