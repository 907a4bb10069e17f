"""Load pictures from benchmarks, folders, CSV files and arrays."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullmatch.data.sources.catalog import DATASETS, Benchmark, data_root
from fullmatch.data.sources.places import is_table
from fullmatch.errors import UserError, did_you_mean
from fullmatch.plugins import is_reference

if TYPE_CHECKING:
    from fullmatch.data.dataset import SemiDataset as SemiDataset
    from fullmatch.data.dataset import Source as Source
    from fullmatch.data.sources.arrays import from_arrays as from_arrays
    from fullmatch.data.splits import Split as Split
    from fullmatch.data.splits import draw_split as draw_split
    from fullmatch.data.stores.encoded import EncodedStore as EncodedStore
    from fullmatch.data.stores.files import FileStore as FileStore
    from fullmatch.data.stores.image_store import ImageStore as ImageStore
    from fullmatch.data.stores.memory import TensorStore as TensorStore

# Imported on first use: listing the benchmarks must not import torch.
_LAZY_MODULES = {
    "EncodedStore": "stores.encoded",
    "FileStore": "stores.files",
    "ImageStore": "stores.image_store",
    "SemiDataset": "dataset",
    "Source": "dataset",
    "Split": "splits",
    "TensorStore": "stores.memory",
    "draw_split": "splits",
    "from_arrays": "sources.arrays",
}

__all__ = [
    "DATASETS",
    "EncodedStore",
    "FileStore",
    "ImageStore",
    "SemiDataset",
    "Source",
    "Split",
    "TensorStore",
    "draw_split",
    "from_arrays",
    "load",
]

MIN_SIZE = 8  # pixels


def load(
    name_or_path: str,
    *,
    root: Path | None = None,
    size: int | None = None,
    download: bool = True,
    unknown_classes: Collection[str] = (),
) -> "Source":
    """Load a benchmark by name, or the user's own pictures.

    These are a folder, a .csv, .npz, .parquet, .arrow or .tar file, a pattern such as
    'shards-{000..099}.tar', a Hugging Face data set as `hf:PATH` or `hf:NAME`, or a function as
    `module:function` that returns a `Source`.

    Benchmarks are searched under `root`, else in the folder given by FULLMATCH_DATA, else in
    ./data, and downloaded there if they are missing and `download` is True. `size` is the picture
    size that files are resized to; by default it is chosen from the pictures. Classes named in
    `unknown_classes` lose their labels, see `data.open_set`.
    """
    from fullmatch.data.open_set import hide_classes

    if size is not None and size < MIN_SIZE:
        raise UserError(f"a picture size of {size} is too small; use {MIN_SIZE} or more")
    if benchmark := DATASETS.get(name_or_path):
        from fullmatch.data.sources.benchmarks import read_benchmark

        source = read_benchmark(benchmark, data_root(root), size=size, download=download)
        return hide_classes(source, unknown_classes)
    if is_table(name_or_path):
        from fullmatch.data.sources.picture_tables import from_table

        source = from_table(name_or_path, size=size, unknown_classes=unknown_classes)
        return hide_classes(source, unknown_classes)
    path = Path(name_or_path).expanduser()
    if is_reference(name_or_path) and not path.exists():
        from fullmatch.data.sources.own import load_own_data

        if size is not None:
            raise UserError(f"the images of {name_or_path} already have a size; leave the size out")
        return hide_classes(load_own_data(name_or_path), unknown_classes)
    if not path.exists():
        raise UserError(
            f"no data set {name_or_path!r}: it is neither a path nor one of "
            f"{', '.join(DATASETS)}{did_you_mean(name_or_path, DATASETS)}"
        )
    return hide_classes(_load_own(path, size, unknown_classes), unknown_classes)


def find_benchmark(name: str) -> Benchmark | None:
    """Facts about a benchmark of this package, or of a `module:function`; None for other data."""
    if name in DATASETS or not is_reference(name):
        return DATASETS.get(name)
    from fullmatch.data.sources.own import own_benchmark

    return own_benchmark(name)


def _load_own(path: Path, size: int | None, unknown_classes: Collection[str]) -> "Source":
    """Load the user's own pictures by the kind of file."""
    if path.is_dir():
        from fullmatch.data.sources.folders import from_folder

        return from_folder(path, size=size, unknown_classes=unknown_classes)
    if path.suffix.lower() == ".csv":
        from fullmatch.data.sources.tables import from_csv

        return from_csv(path, size=size, unknown_classes=unknown_classes)
    if path.suffix.lower() == ".npz":
        from fullmatch.data.sources.arrays import from_npz

        if size is not None:
            raise UserError(f"the images in {path} already have a size; leave the size out")
        return from_npz(path)
    raise UserError(
        f"{path} is not a data set; give a folder of pictures, or a .csv, .npz, .parquet, .arrow "
        "or .tar file"
    )


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
