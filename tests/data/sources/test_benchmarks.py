"""Each benchmark is read from small files in its published format."""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from fullmatch.augment.views import Augmenter
from fullmatch.data import DATASETS, SemiDataset, Source, draw_split, load
from fullmatch.data.sources.benchmarks import read_benchmark
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError
from tests.data.conftest import Draw

RNG = np.random.default_rng(0)


def with_own_hashes(name: str, root: Path) -> Benchmark:
    """The benchmark with the hashes of the files that the test wrote."""

    def md5(path: Path) -> str:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return hashlib.md5(file.read()).hexdigest()

    benchmark = DATASETS[name]
    files = [(file, md5(root / benchmark.folder / file)) for file, _ in benchmark.files]
    return replace(benchmark, files=tuple(files))


def pixels(source: Source, test: bool = False) -> torch.Tensor:
    store = source.test if test else source.images
    assert isinstance(store, TensorStore)
    return store.images


def python2_pickle(data: np.ndarray, key: str, labels: list[int]) -> bytes:
    """A batch as Python 2 wrote it: byte strings, and an array of unsigned bytes."""

    def text(value: str | bytes) -> bytes:
        raw = value.encode() if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(raw)) + raw

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    dtype = b"cnumpy\ndtype\n(" + text("u1") + number(0) + number(1) + b"tR("
    dtype += number(3) + text("|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n("
    array += number(0) + b"t" + text("b") + b"tR("
    array += number(1) + b"(" + b"".join(map(number, data.shape)) + b"t" + dtype
    array += b"\x89" + text(data.tobytes()) + b"tb"
    listed = b"](" + b"".join(map(number, labels)) + b"e"
    items = text("batch_label") + text("a batch") + text(key) + listed + text("data") + array
    return b"\x80\x02}(" + items + b"u."


def write_cifar(root: Path, name: str, key: str) -> list[np.ndarray]:
    benchmark = DATASETS[name]
    folder = root / benchmark.folder
    folder.mkdir(parents=True)
    batches = []
    for i, (file, _) in enumerate(benchmark.files):
        batches.append(RNG.integers(0, 256, (4, 3072), np.uint8))
        (folder / file).write_bytes(python2_pickle(batches[-1], key, [i, 1, 2, 3]))
    return batches


@pytest.mark.parametrize(
    ("name", "key", "parts"), [("cifar10", "labels", 5), ("cifar100", "fine_labels", 1)]
)
def test_cifar(tmp_path: Path, name: str, key: str, parts: int) -> None:
    batches = write_cifar(tmp_path, name, key)
    source = read_benchmark(with_own_hashes(name, tmp_path), tmp_path, download=False)
    expected = np.concatenate(batches[:-1]).reshape(-1, 3, 32, 32)
    assert (pixels(source).numpy() == expected).all()
    assert (pixels(source, test=True).numpy() == batches[-1].reshape(-1, 3, 32, 32)).all()
    assert source.labels.tolist() == [label for i in range(parts) for label in (i, 1, 2, 3)]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [parts, 1, 2, 3]
    assert len(source.classes) == source.num_classes == DATASETS[name].num_classes
    assert source.benchmark
    assert source.appearance.flip
    assert source.appearance.padding == 4


def test_cifar_from_its_archive(tmp_path: Path) -> None:
    write_cifar(tmp_path / "unpacked", "cifar10", "labels")
    unpacked = read_benchmark(
        with_own_hashes("cifar10", tmp_path / "unpacked"), tmp_path / "unpacked"
    )
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "unpacked/cifar-10-batches-py", "cifar-10-batches-py")
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    benchmark = replace(DATASETS["cifar10"], archive=(path.name, md5))
    source = read_benchmark(benchmark, tmp_path, download=False)
    assert pixels(source).equal(pixels(unpacked))
    assert source.labels.equal(unpacked.labels)
    assert sorted(os.listdir(tmp_path)) == ["cifar-10-python.tar.gz", "unpacked"]
    with pytest.raises(UserError, match=r"cifar-10-python.tar.gz is damaged \(its MD5 hash"):
        read_benchmark(DATASETS["cifar10"], tmp_path, download=False)


def test_batch_that_runs_code_is_rejected(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path}/ran",)

    write_cifar(tmp_path, "cifar100", "fine_labels")
    (tmp_path / "cifar-100-python/train").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(UserError, match=r"damaged \(it calls posix.system\)"):
        read_benchmark(with_own_hashes("cifar100", tmp_path), tmp_path, download=False)
    assert not (tmp_path / "ran").exists()


def write_svhn(root: Path, name: str, count: int) -> np.ndarray:
    root.mkdir(exist_ok=True)
    images = RNG.integers(0, 256, (32, 32, 3, count), np.uint8)
    digits = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
    savemat(root / name, {"X": images, "y": digits}, do_compression=True)
    return images.transpose(3, 2, 0, 1)


def test_svhn(tmp_path: Path) -> None:
    train = write_svhn(tmp_path / "svhn", "train_32x32.mat", 12)
    extra = write_svhn(tmp_path / "svhn", "extra_32x32.mat", 3)
    test = write_svhn(tmp_path / "svhn", "test_32x32.mat", 2)
    source = read_benchmark(with_own_hashes("svhn", tmp_path), tmp_path, download=False)
    assert (pixels(source).numpy() == np.concatenate([train, extra])).all()
    assert (pixels(source, test=True).numpy() == test).all()
    assert source.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 1, 2, 3]
    assert not source.appearance.flip
    small = read_benchmark(with_own_hashes("svhn-noextra", tmp_path), tmp_path, download=False)
    assert (pixels(small).numpy() == train).all()


def test_stl10(tmp_path: Path) -> None:
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    images = {}
    for part, count in (("train", 3), ("unlabeled", 4), ("test", 2)):
        images[part] = RNG.integers(0, 256, (count, 3, 96, 96), np.uint8)
        images[part].transpose(0, 1, 3, 2).tofile(folder / f"{part}_X.bin")
    np.array([1, 10, 2], np.uint8).tofile(folder / "train_y.bin")
    np.array([3, 4], np.uint8).tofile(folder / "test_y.bin")
    source = read_benchmark(with_own_hashes("stl10", tmp_path), tmp_path, download=False)
    joined = np.concatenate([images["train"], images["unlabeled"]])
    assert (pixels(source).numpy() == joined).all()
    assert (pixels(source, test=True).numpy() == images["test"]).all()
    assert source.labels.tolist() == [0, 9, 1, -1, -1, -1, -1]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [2, 3]


def write_idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(f">HBB{array.ndim}i", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


@pytest.mark.parametrize("packaged", [False, True])
def test_fashion_mnist(tmp_path: Path, packaged: bool) -> None:
    folder = tmp_path / "FashionMNIST/raw"
    arrays = [
        RNG.integers(0, 256, (3, 28, 28), np.uint8),
        np.array([9, 0, 1], np.uint8),
        RNG.integers(0, 256, (2, 28, 28), np.uint8),
        np.array([2, 3], np.uint8),
    ]
    for (name, _), array in zip(DATASETS["fashion-mnist"].files, arrays, strict=True):
        write_idx(folder / name, array)
    benchmark = replace(with_own_hashes("fashion-mnist", tmp_path), extra_folders=(str(folder),))
    root = tmp_path / "elsewhere" if packaged else tmp_path
    source = read_benchmark(benchmark, root, download=False)
    assert (pixels(source)[:, 0].numpy() == arrays[0]).all()
    assert (pixels(source, test=True)[:, 0].numpy() == arrays[2]).all()
    assert source.labels.tolist() == [9, 0, 1]
    assert source.appearance.flip


def write_imagenet(root: Path, draw_picture: Draw) -> Path:
    for label, color in (("n01440764", (200, 0, 0)), ("n01443537", (0, 200, 0))):
        for i in range(3):
            draw_picture(root / f"train/{label}/{label}_{i}.JPEG", color, (300, 260))
        draw_picture(root / f"val/{label}/ILSVRC2012_val_{label}.JPEG", color, (260, 300))
    return root


def test_imagenet(tmp_path: Path, draw_picture: Draw) -> None:
    write_imagenet(tmp_path / "imagenet", draw_picture)
    source = load("imagenet", root=tmp_path)
    assert isinstance(source.images, FileStore)
    assert source.images.shape == (3, 256, 256)
    assert source.classes == ("n01440764", "n01443537")
    assert source.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [0, 1]
    assert source.images.read(torch.tensor([5]))[0, :, 99, 99].tolist()[1] > 190
    assert source.appearance.crop == 224
    assert "2 of the 1000 classes" in source.notes[0]
    small = load("imagenet", root=tmp_path / "imagenet", size=64)
    assert small.images.shape == (3, 64, 64)
    assert small.appearance.crop == 56
    assert small.test is not None
    assert small.test.shape == (3, 56, 56)


def test_imagenet_is_stretched_as_in_torchssl(tmp_path: Path) -> None:
    """Nothing is cut off: the halves of a wide picture meet in the middle, and its rims stay."""
    for part in ("train", "val"):
        wide = Image.new("RGB", (600, 100), (0, 0, 200))
        wide.paste((200, 0, 0), (0, 0, 50, 100))
        for label in ("a", "b"):
            (tmp_path / "imagenet" / part / label).mkdir(parents=True)
            wide.save(tmp_path / "imagenet" / part / label / "wide.png")
    source = load("imagenet", root=tmp_path)
    assert source.appearance.stretch
    assert source.test is not None
    assert source.test.shape == (3, 224, 224)  # the whole picture, not the middle of a larger one
    for store, rim in ((source.images, 256 // 12), (source.test, 224 // 12)):
        row = store.read(torch.tensor([0]))[0, :, 50]
        assert row[0, : rim - 2].min() > 190
        assert row[2, rim + 2 :].min() > 190
    # The plain view of a test picture is the picture.
    view = Augmenter(source.appearance)(source.test.read(torch.tensor([0])), "plain")
    assert view.shape == (1, 3, 224, 224)


def test_imagenet_with_unsorted_validation_pictures(tmp_path: Path, draw_picture: Draw) -> None:
    folder = write_imagenet(tmp_path / "imagenet", draw_picture)
    for path in list((folder / "val").rglob("*.JPEG")):
        path.rename(folder / "val" / path.name)
        path.parent.rmdir()
    with pytest.raises(UserError, match="into one folder per class"):
        load("imagenet", root=tmp_path)


def test_digits() -> None:
    source = load("digits")
    train, test = pixels(source), pixels(source, test=True)
    assert train.shape == (1297, 1, 8, 8)
    assert test.shape == (500, 1, 8, 8)
    assert source.test_labels is not None
    assert source.test_labels.bincount().tolist() == [50] * 10
    assert source.labels.bincount().min() > 120
    train_bytes = {bytes(image.numpy()) for image in train}
    assert not any(bytes(image.numpy()) in train_bytes for image in test)
    assert train.min() == 0
    assert train.max() == 255
    appearance = source.appearance
    assert not appearance.flip
    assert appearance.padding == 1
    assert appearance.mean == pytest.approx(((train.double() / 255).mean().item(),), abs=1e-5)
    assert appearance.std == pytest.approx(((train.double() / 255).std().item(),), abs=2e-4)
    assert hashlib.md5(test.numpy().tobytes()).hexdigest() == "62b6cae80e26b331823ac4e69cb4fe38"


def test_split_of_digits() -> None:
    source = load("digits")
    data = SemiDataset.from_source(source, draw_split(source.labels, 40, 0, 10, source.name))
    assert data.labels[data.labeled].bincount().tolist() == [4] * 10
    assert len(data.unlabeled) == 1297


def write_npz(path: Path, count: int = 20, side: int = 32) -> np.ndarray:
    x = RNG.integers(0, 256, (count, side, side, 3), np.uint8)
    y = np.arange(count) % 10
    np.savez(path, train_x=x, train_y=y, test_x=x[:10], test_y=y[:10])
    return x


def test_npz_instead_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = write_npz(tmp_path / "cifar10.npz")
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    source = load("cifar10")
    assert (pixels(source).numpy() == x.transpose(0, 3, 1, 2)).all()
    assert source.benchmark
    assert source.name == "cifar10"
    assert source.classes[0] == "airplane"
    assert source.appearance.mean[0] == pytest.approx(125.3 / 255)
    assert "contains 20 training and 10 test images" in source.notes[0]


def test_npz_of_another_data_set(tmp_path: Path) -> None:
    write_npz(tmp_path / "stl10.npz")
    with pytest.raises(UserError, match="those of stl10 are"):
        load("stl10", root=tmp_path)
    write_npz(tmp_path / "cifar100.npz")
    with pytest.raises(UserError, match="train_y: expected a label for every class"):
        load("cifar100", root=tmp_path)
    np.savez(tmp_path / "svhn.npz", train_x=np.zeros((10, 32, 32, 3), "u1"), train_y=range(10))
    with pytest.raises(UserError, match="lacks test_x and test_y"):
        load("svhn", root=tmp_path)


def test_size_of_a_benchmark_cannot_be_changed() -> None:
    with pytest.raises(UserError, match="are 8x8; leave the size out"):
        load("digits", size=32)


@pytest.mark.parametrize("damage", [b"", b"x", io.BytesIO(b"\x1f\x8b\x08").getvalue()])
def test_error_names_the_damaged_file(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "FashionMNIST/raw"
    folder.mkdir(parents=True)
    for name, _ in DATASETS["fashion-mnist"].files:
        (folder / name).write_bytes(damage)
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte.gz is damaged .*download"):
        load("fashion-mnist", root=tmp_path, download=False)
