"""Every way pictures come in: benchmarks by name, folders, CSV files and arrays."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullmatch.data.sources.catalog import DATASETS, data_root
from fullmatch.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from fullmatch.data.dataset import SemiDataset as SemiDataset
    from fullmatch.data.dataset import Source as Source
    from fullmatch.data.sources.arrays import from_arrays as from_arrays
    from fullmatch.data.splits import Split as Split
    from fullmatch.data.splits import draw as draw
    from fullmatch.data.stores.arrow import ArrowStore as ArrowStore
    from fullmatch.data.stores.files import FileStore as FileStore
    from fullmatch.data.stores.image_store import ImageStore as ImageStore
    from fullmatch.data.stores.memory import TensorStore as TensorStore

_HOMES = {
    "ArrowStore": "stores.arrow",
    "FileStore": "stores.files",
    "ImageStore": "stores.base",
    "SemiDataset": "dataset",
    "Source": "dataset",
    "Split": "splits",
    "TensorStore": "stores.memory",
    "draw": "splits",
    "from_arrays": "sources.arrays",
}

__all__ = [
    "DATASETS",
    "ArrowStore",
    "FileStore",
    "ImageStore",
    "SemiDataset",
    "Source",
    "Split",
    "TensorStore",
    "draw",
    "from_arrays",
    "load",
]


def load(
    name_or_path: str,
    *,
    root: Path | None = None,
    size: int | None = None,
    download: bool = True,
) -> "Source":
    """A benchmark by name, or the user's own pictures: a folder, a .csv or an .npz file.

    Benchmarks are looked for under `root`, else the folder FULLMATCH_DATA names, else ./data,
    and fetched into it when they are missing and `download` is True. `size` is the side that
    picture files are brought to; without it, it follows from the pictures.
    """
    if size is not None and size < 8:
        raise UserError(f"pictures of {size} pixels a side are too small; use a size of 8 or more")
    # Torch comes with the readers, and lists of data sets do without either.
    if benchmark := DATASETS.get(name_or_path):
        from fullmatch.data.sources.benchmarks import read

        return read(benchmark, data_root(root), size=size, download=download)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        from fullmatch.data.sources.folders import from_folder

        return from_folder(path, size=size)
    if not path.exists():
        raise UserError(
            f"no data set {name_or_path!r}: neither a known name ({', '.join(DATASETS)}) nor a "
            f"path{did_you_mean(name_or_path, DATASETS)}"
        )
    if path.suffix.lower() == ".csv":
        from fullmatch.data.sources.tables import from_csv

        return from_csv(path, size=size)
    if path.suffix.lower() == ".npz":
        from fullmatch.data.sources.arrays import from_npz

        if size is not None:
            raise UserError(f"the images in {path} have a size already; leave the size out")
        return from_npz(path)
    raise UserError(f"{path} is no data set; give a folder of pictures, a .csv or an .npz file")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
