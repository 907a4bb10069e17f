"""The published benchmarks, read from the files their owners publish or from an .npz file."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data.dataset import Source, class_order
from fullmatch.data.sources.archives import Files, fetch
from fullmatch.data.sources.arrays import from_npz
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.data.sources.folders import picture_files
from fullmatch.data.splits import draw
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError


class Pictures(NamedTuple):
    """Images (N, C, H, W) and their labels, -1 where the owners give none."""

    images: Tensor
    labels: Tensor
    test: Tensor
    test_labels: Tensor


def read(
    benchmark: Benchmark, root: Path, *, size: int | None = None, download: bool = True
) -> Source:
    """The benchmark as a source, fetched first when it is missing and may be downloaded."""
    if size is not None and benchmark.name != "imagenet":
        side = benchmark.shape[1]
        raise UserError(f"the images of {benchmark.name} are {side}x{side}; leave the size out")
    if benchmark.embedded:
        return _source(benchmark, _digits())
    place = benchmark.found(root) or fetch(benchmark, root, download)
    if place.suffix == ".npz":
        return _from_npz(benchmark, place)
    if benchmark.name == "imagenet":
        return _imagenet(benchmark, place, size or benchmark.shape[1])
    return _source(benchmark, _READERS[benchmark.name](Files(benchmark, place)))


def _source(benchmark: Benchmark, pictures: Pictures) -> Source:
    return Source(
        name=benchmark.name,
        images=TensorStore(pictures.images),
        labels=pictures.labels,
        test=TensorStore(pictures.test),
        test_labels=pictures.test_labels,
        classes=benchmark.classes,
        appearance=_appearance(benchmark),
        benchmark=True,
    )


def _appearance(benchmark: Benchmark) -> Appearance:
    return Appearance(
        mean=benchmark.mean,
        std=benchmark.std,
        flip=benchmark.flip,
        padding=benchmark.padding,
        crop=benchmark.crop,
    )


def _from_npz(benchmark: Benchmark, path: Path) -> Source:
    source = from_npz(path, classes=benchmark.classes or None)
    if source.test is None:
        raise UserError(f"{path} lacks test_x and test_y; a benchmark needs its test images")
    if source.images.shape != benchmark.shape:
        raise UserError(
            f"{path} holds images of shape {source.images.shape} (channels, height, width), "
            f"those of {benchmark.name} are {benchmark.shape}; give the file another name"
        )
    held = len(source.images), len(source.test)
    published = benchmark.train, benchmark.test
    notes: tuple[str, ...] = ()
    if held != published:
        notes = (
            f"{path} holds {held[0]} training and {held[1]} test images, "
            f"{benchmark.name} as published {published[0]} and {published[1]}",
        )
    return replace(
        source,
        name=benchmark.name,
        appearance=_appearance(benchmark),
        benchmark=True,
        notes=notes,
    )


def _digits() -> Pictures:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.from_numpy(np.rint(bunch.images * (255 / 16)).astype(np.uint8))[:, None]
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    # The same 500 in every run: the seed of a run chooses labels, never the test.
    test = torch.tensor(draw(labels, 500, seed=0, num_classes=10, name="digits").labeled)
    train = torch.ones(len(labels), dtype=torch.bool).index_fill(0, test, False)
    return Pictures(images[train], labels[train], images[test], labels[test])


def _cifar(files: Files) -> Pictures:
    return _joined([files.read(name, _cifar_batch) for name, _ in files.benchmark.files])


def _joined(parts: list[tuple[Tensor, Tensor]]) -> Pictures:
    """All parts but the last, which is the test, as one."""
    *train, (test, test_labels) = parts
    images = torch.cat([images for images, _ in train])
    return Pictures(images, torch.cat([labels for _, labels in train]), test, test_labels)


def _cifar_batch(file: BufferedIOBase) -> tuple[Tensor, Tensor]:
    batch = _ArrayUnpickler(file, encoding="latin1").load()
    labels = batch["labels"] if "labels" in batch else batch["fine_labels"]
    return torch.from_numpy(batch["data"].reshape(-1, 3, 32, 32)), torch.tensor(labels)


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Builds NumPy arrays and plain containers, and refuses to call anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it wants to call {module}.{name}")
        return _ALLOWED[module, name]


def _svhn(files: Files) -> Pictures:
    return _joined([files.read(name, _mat) for name, _ in files.benchmark.files])


def _mat(file: BufferedIOBase) -> tuple[Tensor, Tensor]:
    from scipy.io import loadmat

    content = loadmat(file)
    images = np.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
    labels = content["y"].astype(np.int64).flatten() % 10  # the digit 0 is stored as 10
    return torch.from_numpy(images), torch.from_numpy(labels)


def _stl(files: Files) -> Pictures:
    images = [files.read(f"{part}_X.bin", _stl_images) for part in ("train", "unlabeled", "test")]
    labels = [files.read(f"{part}_y.bin", _stl_labels) for part in ("train", "test")]
    unknown = torch.full((len(images[1]),), -1)
    return Pictures(torch.cat(images[:2]), torch.cat([labels[0], unknown]), images[2], labels[1])


def _stl_images(file: BufferedIOBase) -> Tensor:
    columns = np.frombuffer(file.read(), np.uint8).reshape(-1, 3, 96, 96)
    return torch.from_numpy(columns.transpose(0, 1, 3, 2).copy())


def _stl_labels(file: BufferedIOBase) -> Tensor:
    return torch.from_numpy(np.frombuffer(file.read(), np.uint8).astype(np.int64) - 1)


def _fashion(files: Files) -> Pictures:
    arrays = [files.read(name, _idx) for name, _ in files.benchmark.files]
    images, labels, test, test_labels = map(torch.from_numpy, arrays)
    return Pictures(images[:, None], labels.long(), test[:, None], test_labels.long())


def _idx(file: BufferedIOBase) -> NDArray[np.uint8]:
    content = file.read()
    axes = content[3]
    shape = np.frombuffer(content, ">i4", count=axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


def _imagenet(benchmark: Benchmark, folder: Path, side: int) -> Source:
    train, labels, classes = _class_folders(folder / "train")
    test, test_labels, test_classes = _class_folders(folder / "val")
    if not classes or classes != test_classes:
        raise UserError(
            f"{folder}/train has {len(classes)} class folders and {folder}/val "
            f"{len(test_classes)}, which must bear the same names; sort the validation pictures "
            "into a folder per class"
        )
    notes: tuple[str, ...] = ()
    if len(classes) != benchmark.num_classes:
        notes = (f"{folder} holds {len(classes)} of the {benchmark.num_classes} classes",)
    appearance = _appearance(benchmark)
    if side != benchmark.shape[1]:
        appearance = replace(appearance, crop=side * 7 // 8)
    return Source(
        name=benchmark.name,
        images=FileStore(train, (side, side)),
        labels=labels,
        test=FileStore(test, (side, side)),
        test_labels=test_labels,
        classes=classes,
        appearance=appearance,
        benchmark=True,
        notes=notes,
    )


def _class_folders(folder: Path) -> tuple[list[str], Tensor, tuple[str, ...]]:
    classes = class_order(entry.name for entry in folder.iterdir() if entry.is_dir())
    found = [picture_files(folder / name) for name in classes]
    labels = [label for label, paths in enumerate(found) for _ in paths]
    return [path for paths in found for path in paths], torch.tensor(labels), classes


_READERS: dict[str, Callable[[Files], Pictures]] = {
    "cifar10": _cifar,
    "cifar100": _cifar,
    "fashion-mnist": _fashion,
    "stl10": _stl,
    "svhn": _svhn,
    "svhn-noextra": _svhn,
}
