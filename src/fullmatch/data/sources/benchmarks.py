"""Read the published benchmarks from the files of their owners or from an .npz file."""

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
from fullmatch.data.dataset import Source, sort_classes
from fullmatch.data.sources.archives import BenchmarkFiles, download_benchmark
from fullmatch.data.sources.arrays import from_npz
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.data.sources.folders import find_pictures
from fullmatch.data.splits import draw_split
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError


class BenchmarkImages(NamedTuple):
    """Images (N, C, H, W) and their labels, -1 if unlabeled."""

    images: Tensor
    labels: Tensor
    test: Tensor
    test_labels: Tensor


def read_benchmark(
    benchmark: Benchmark, root: Path, *, size: int | None = None, download: bool = True
) -> Source:
    """Read a benchmark as a source; download it first if it is missing and `download` is True."""
    if size is not None and benchmark.name != "imagenet":
        side = benchmark.shape[1]
        raise UserError(f"the images of {benchmark.name} are {side}x{side}; leave the size out")
    if benchmark.bundled:
        return _to_source(benchmark, _read_digits())
    place = benchmark.locate(root) or download_benchmark(benchmark, root, download)
    if place.suffix == ".npz":
        return _read_npz(benchmark, place)
    if benchmark.name == "imagenet":
        return _read_imagenet(benchmark, place, size or benchmark.shape[1])
    return _to_source(benchmark, _READERS[benchmark.name](BenchmarkFiles(benchmark, place)))


def _to_source(benchmark: Benchmark, content: BenchmarkImages) -> Source:
    return Source(
        name=benchmark.name,
        images=TensorStore(content.images),
        labels=content.labels,
        test=TensorStore(content.test),
        test_labels=content.test_labels,
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


def _read_npz(benchmark: Benchmark, path: Path) -> Source:
    source = from_npz(path, classes=benchmark.classes or None)
    if source.test is None:
        raise UserError(f"{path} lacks test_x and test_y; a benchmark needs its test images")
    if source.images.shape != benchmark.shape:
        raise UserError(
            f"{path} contains images of shape {source.images.shape} (channels, height, width), "
            f"those of {benchmark.name} are {benchmark.shape}; rename the file"
        )
    counts = len(source.images), len(source.test)
    published = benchmark.train, benchmark.test
    notes: tuple[str, ...] = ()
    if counts != published:
        notes = (
            f"{path} contains {counts[0]} training and {counts[1]} test images; "
            f"{benchmark.name} was published with {published[0]} and {published[1]}",
        )
    return replace(
        source,
        name=benchmark.name,
        appearance=_appearance(benchmark),
        benchmark=True,
        notes=notes,
    )


def _read_digits() -> BenchmarkImages:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.from_numpy(np.rint(bunch.images * (255 / 16)).astype(np.uint8))[:, None]
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    # The same 500 in every run: the seed of a run chooses labels, never the test set.
    test = torch.tensor(draw_split(labels, 500, seed=0, num_classes=10, name="digits").labeled)
    train = torch.ones(len(labels), dtype=torch.bool).index_fill(0, test, False)
    return BenchmarkImages(images[train], labels[train], images[test], labels[test])


def _read_cifar(files: BenchmarkFiles) -> BenchmarkImages:
    return _concatenate([files.read(name, _parse_cifar) for name, _ in files.benchmark.files])


def _concatenate(parts: list[tuple[Tensor, Tensor]]) -> BenchmarkImages:
    """Join all training parts; the last part is the test set."""
    *train, (test, test_labels) = parts
    images = torch.cat([images for images, _ in train])
    return BenchmarkImages(images, torch.cat([labels for _, labels in train]), test, test_labels)


def _parse_cifar(file: BufferedIOBase) -> tuple[Tensor, Tensor]:
    batch = _ArrayUnpickler(file, encoding="latin1").load()
    labels = batch["labels"] if "labels" in batch else batch["fine_labels"]
    return torch.from_numpy(batch["data"].reshape(-1, 3, 32, 32)), torch.tensor(labels)


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickle NumPy arrays and plain containers, and refuse to call anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it calls {module}.{name}")
        return _ALLOWED[module, name]


def _read_svhn(files: BenchmarkFiles) -> BenchmarkImages:
    return _concatenate([files.read(name, _parse_mat) for name, _ in files.benchmark.files])


def _parse_mat(file: BufferedIOBase) -> tuple[Tensor, Tensor]:
    from scipy.io import loadmat

    content = loadmat(file)
    images = np.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
    labels = content["y"].astype(np.int64).flatten() % 10  # the digit 0 is stored as 10
    return torch.from_numpy(images), torch.from_numpy(labels)


def _read_stl(files: BenchmarkFiles) -> BenchmarkImages:
    train, unlabeled, test = (
        files.read(f"{part}_X.bin", _parse_stl_images) for part in ("train", "unlabeled", "test")
    )
    labels, test_labels = (
        files.read(f"{part}_y.bin", _parse_stl_labels) for part in ("train", "test")
    )
    unknown = torch.full((len(unlabeled),), -1)
    return BenchmarkImages(
        torch.cat([train, unlabeled]), torch.cat([labels, unknown]), test, test_labels
    )


def _parse_stl_images(file: BufferedIOBase) -> Tensor:
    columns = np.frombuffer(file.read(), np.uint8).reshape(-1, 3, 96, 96)
    return torch.from_numpy(columns.transpose(0, 1, 3, 2).copy())


def _parse_stl_labels(file: BufferedIOBase) -> Tensor:
    return torch.from_numpy(np.frombuffer(file.read(), np.uint8).astype(np.int64) - 1)


def _read_fashion(files: BenchmarkFiles) -> BenchmarkImages:
    arrays = [files.read(name, _parse_idx) for name, _ in files.benchmark.files]
    images, labels, test, test_labels = map(torch.from_numpy, arrays)
    return BenchmarkImages(images[:, None], labels.long(), test[:, None], test_labels.long())


def _parse_idx(file: BufferedIOBase) -> NDArray[np.uint8]:
    content = file.read()
    axes = content[3]
    shape = np.frombuffer(content, ">i4", count=axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


def _read_imagenet(benchmark: Benchmark, folder: Path, side: int) -> Source:
    train, labels, classes = _list_class_folders(folder / "train")
    test, test_labels, test_classes = _list_class_folders(folder / "val")
    if not classes or classes != test_classes:
        raise UserError(
            f"{folder}/train has {len(classes)} class folders and {folder}/val "
            f"{len(test_classes)}, but both need the same ones; sort the validation pictures "
            "into one folder per class"
        )
    notes: tuple[str, ...] = ()
    if len(classes) != benchmark.num_classes:
        notes = (f"{folder} contains {len(classes)} of the {benchmark.num_classes} classes",)
    # As in TorchSSL: pictures are stretched, for the test to the size of a training crop.
    crop = benchmark.crop if side == benchmark.shape[1] else side * 7 // 8
    assert crop is not None
    appearance = replace(_appearance(benchmark), crop=crop, stretch=True)
    return Source(
        name=benchmark.name,
        images=FileStore(train, (side, side), stretch=True),
        labels=labels,
        test=FileStore(test, (crop, crop), stretch=True),
        test_labels=test_labels,
        classes=classes,
        appearance=appearance,
        benchmark=True,
        notes=notes,
    )


def _list_class_folders(folder: Path) -> tuple[list[str], Tensor, tuple[str, ...]]:
    """Paths, labels and class names of a folder with one folder per class."""
    classes = sort_classes(entry.name for entry in folder.iterdir() if entry.is_dir())
    paths = [find_pictures(folder / name) for name in classes]
    labels = [label for label, members in enumerate(paths) for _ in members]
    return [path for members in paths for path in members], torch.tensor(labels), classes


_READERS: dict[str, Callable[[BenchmarkFiles], BenchmarkImages]] = {
    "cifar10": _read_cifar,
    "cifar100": _read_cifar,
    "fashion-mnist": _read_fashion,
    "stl10": _read_stl,
    "svhn": _read_svhn,
    "svhn-noextra": _read_svhn,
}
