"""The same pictures as arrays, Parquet, Arrow and tar shards."""

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet

CLASSES = ("cat", "dog")
Member = tuple[str, bytes]  # name and content of a file in a shard


def encode(pixels: NDArray[np.uint8], kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def noise(count: int, side: int = 8) -> NDArray[np.uint8]:
    """Gray pictures (count, side, side)."""
    return np.random.default_rng(0).integers(0, 256, (count, side, side), np.uint8)


def write_parquet(path: Path, images: Sequence[Any], labels: Any = None, **columns: Any) -> Path:
    labeled = {} if labels is None else {"label": labels}
    parquet.write_table(pa.table({"image": list(images), **labeled, **columns}), path)
    return path


def hub_dataset(
    images: NDArray[np.uint8], labels: Sequence[int], classes: Sequence[str] = CLASSES
) -> Any:
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=list(classes))}
    )
    pictures = [Image.fromarray(pixels) for pixels in images]
    columns = {"image": pictures, "label": list(labels)}
    return datasets.Dataset.from_dict(columns, features=features)


def save_hub(path: Path, splits: Mapping[str, Any]) -> Path:
    """Save splits by name as `datasets` does."""
    datasets.DatasetDict(dict(splits)).save_to_disk(str(path))
    return path


def members(pictures: Sequence[bytes], labels: Sequence[Any], first: int = 0) -> list[Member]:
    """KEY.png and, unless the label is -1, KEY.cls."""
    files: list[Member] = []
    for number, (picture, label) in enumerate(zip(pictures, labels, strict=True), first):
        files.append((f"{number:04}.png", picture))
        if label != -1:
            files.append((f"{number:04}.cls", str(label).encode()))
    return files


def write_shard(path: Path, files: Sequence[Member]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
