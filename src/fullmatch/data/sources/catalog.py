"""The benchmarks by name: what they contain, which files they come in, and where to look."""

import os
from dataclasses import dataclass
from pathlib import Path

from fullmatch.data.sources.benchmark_classes import CIFAR10, CIFAR100, DIGITS, FASHION, STL10


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Facts about a published data set; this module imports no torch, so that lists are fast."""

    name: str
    train: int  # images, with or without labels
    test: int
    num_classes: int
    classes: tuple[str, ...] = ()  # empty: named after the class folders
    shape: tuple[int, int, int]  # (channels, height, width)
    mean: tuple[float, ...]  # of pixels in [0, 1]
    std: tuple[float, ...]
    flip: bool = True
    padding: int = 4
    crop: int | None = None
    folder: str = ""  # of its files, below the data folder
    files: tuple[tuple[str, str], ...] = ()  # names and MD5 hashes as published by the owners
    archive: tuple[str, str] | None = None  # the same files as one .tar.gz
    extra_folders: tuple[str, ...] = ()  # other folders that may hold the files
    url: str = ""  # where the owners publish the archive or the files
    bundled: bool = False  # comes with an installed package

    def search_folders(self, root: Path) -> list[Path]:
        """Where the files may be, most likely place first."""
        below = [root / self.folder, root / self.name / self.folder, root / self.name, root]
        return [*dict.fromkeys(below), *map(Path, self.extra_folders)]

    def missing_files(self, folder: Path) -> list[str]:
        """Files that the folder lacks; entries without a hash are folders themselves."""
        return [
            name
            for name, md5 in self.files
            if not ((folder / name).is_file() if md5 else (folder / name).is_dir())
        ]

    def locate(self, root: Path) -> Path | None:
        """The folder, archive or .npz file to read from, if there is one."""
        for folder in self.search_folders(root):
            if self.files and not self.missing_files(folder):
                return folder
        archives = [root / self.archive[0]] if self.archive else []
        candidates = [*archives, root / f"{self.name}.npz"]
        return next((path for path in candidates if path.is_file()), None)

    def is_present(self, root: Path | None = None) -> bool:
        """Whether a run could start without a download."""
        return self.bundled or self.locate(data_root(root)) is not None


def data_root(root: Path | None = None) -> Path:
    """The data folder: `root` if given, else FULLMATCH_DATA, else ./data."""
    return root or Path(os.environ.get("FULLMATCH_DATA") or "data").expanduser()


def _scaled(*levels: float) -> tuple[float, ...]:
    return tuple(level / 255 for level in levels)


_CIFAR10 = Benchmark(
    name="cifar10",
    train=50_000,
    test=10_000,
    num_classes=10,
    classes=CIFAR10,
    shape=(3, 32, 32),
    mean=_scaled(125.3, 123.0, 113.9),
    std=_scaled(63.0, 62.1, 66.7),
    folder="cifar-10-batches-py",
    files=(
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
        ("test_batch", "40351d587109b95175f43aff81a1287e"),
    ),
    url="https://www.cs.toronto.edu/~kriz/",
    archive=("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
)

_CIFAR100 = Benchmark(
    name="cifar100",
    train=50_000,
    test=10_000,
    num_classes=100,
    classes=CIFAR100,
    shape=(3, 32, 32),
    mean=_scaled(129.3, 124.1, 112.4),
    std=_scaled(68.2, 65.4, 70.4),
    folder="cifar-100-python",
    files=(
        ("train", "16019d7e3df5f24257cddd939b257f8d"),
        ("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    ),
    url="https://www.cs.toronto.edu/~kriz/",
    archive=("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
)

_DIGITS = Benchmark(
    name="digits",
    train=1_297,
    test=500,
    num_classes=10,
    classes=DIGITS,
    shape=(1, 8, 8),
    mean=(0.30555,),
    std=(0.37612,),
    flip=False,
    padding=1,
    bundled=True,
)

_FASHION = Benchmark(
    name="fashion-mnist",
    train=60_000,
    test=10_000,
    num_classes=10,
    classes=FASHION,
    shape=(1, 28, 28),
    mean=(0.28604,),
    std=(0.35302,),
    folder="FashionMNIST/raw",
    files=(  # hashes of the unpacked content, because distributions repack it
        ("train-images-idx3-ubyte.gz", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        ("train-labels-idx1-ubyte.gz", "9018921c3c673c538a1fc5bad174d6f9"),
        ("t10k-images-idx3-ubyte.gz", "8181f5470baa50b63fa0f6fddb340f0a"),
        ("t10k-labels-idx1-ubyte.gz", "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
    url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    extra_folders=("/usr/share/datasets/fashion-mnist",),  # Debian's dataset-fashion-mnist
)

_IMAGENET = Benchmark(
    name="imagenet",
    train=1_281_167,
    test=50_000,
    num_classes=1_000,
    shape=(3, 256, 256),
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    crop=224,
    folder="imagenet",
    files=(("train", ""), ("val", "")),  # folders with one folder per class: no hash
)

_STL10 = Benchmark(
    name="stl10",
    train=105_000,
    test=8_000,
    num_classes=10,
    classes=STL10,
    shape=(3, 96, 96),
    mean=_scaled(112.4, 109.1, 98.6),
    std=_scaled(68.4, 66.6, 68.5),
    folder="stl10_binary",
    files=(
        ("train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"),
        ("train_y.bin", "5a34089d4802c674881badbb80307741"),
        ("unlabeled_X.bin", "5242ba1fed5e4be9e1e742405eb56ca4"),
        ("test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"),
        ("test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"),
    ),
    url="http://ai.stanford.edu/~acoates/stl10/",
    archive=("stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),
)

_SVHN_FILES = (
    ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
    ("extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7"),
    ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
)


def _svhn(name: str, train: int, files: tuple[tuple[str, str], ...]) -> Benchmark:
    return Benchmark(
        name=name,
        train=train,
        test=26_032,
        num_classes=10,
        classes=DIGITS,
        shape=(3, 32, 32),
        mean=(0.4380, 0.4440, 0.4730),
        std=(0.1751, 0.1771, 0.1744),
        flip=False,
        url="http://ufldl.stanford.edu/housenumbers/",
        folder="svhn",
        files=files,
    )


DATASETS: dict[str, Benchmark] = {
    "cifar10": _CIFAR10,
    "cifar100": _CIFAR100,
    "digits": _DIGITS,
    "fashion-mnist": _FASHION,
    "imagenet": _IMAGENET,
    "stl10": _STL10,
    "svhn": _svhn("svhn", 604_388, _SVHN_FILES),
    "svhn-noextra": _svhn("svhn-noextra", 73_257, (_SVHN_FILES[0], _SVHN_FILES[2])),
}
