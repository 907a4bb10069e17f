"""One reading of every picture: what is needed to find copies and strangers, and no more."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fullmatch.data.dataset import SemiDataset, Source
from fullmatch.data.quality.duplicates import miniature, perceptual_hash
from fullmatch.data.quality.outliers import look, strangers
from fullmatch.data.stores import pictures
from fullmatch.data.stores.image_store import ImageStore, cached_per_store, evenly_spaced

SIDE = 32  # of the copy that features are taken from
SAMPLED = 2000  # pictures of a kind that the share of strangers is judged by
Told = Callable[[int], object]  # called after each picture with how many there are, for a bar


def quietly(total: int) -> None:
    """For callers that draw nothing."""


class Look(NamedTuple):
    digest: bytes  # of the decoded pixels: two files of one picture have the same
    hash: NDArray[np.uint8]
    miniature: NDArray[np.uint8]
    features: NDArray[np.float32]
    size: tuple[int, int]  # width, height
    grey: bool


@dataclass(frozen=True)
class Looks:
    """Of many pictures, a row each; those that cannot be read are not among them."""

    readable: list[bool]  # for every picture that was asked for
    digests: list[bytes]
    hashes: NDArray[np.uint8]
    miniatures: NDArray[np.uint8]
    features: NDArray[np.float32]
    sizes: list[tuple[int, int]]
    grey: bool  # all of them


def read_files(paths: Sequence[str], told: Told) -> Looks:
    """Looks at picture files; `told` hears after each how many there are."""
    found = []
    for one in pictures.map_in_threads(lambda path: pictures.try_read(_of_file, path), paths):
        found.append(one)
        told(len(paths))
    return _gathered(found)


def read_source(source: Source, told: Told) -> Looks:
    """Looks at pictures that are pixels already: the training ones, then those of the test."""
    stores = [source.images, *([source.test] if source.test is not None else [])]
    found, total = [], sum(map(len, stores))
    for store in stores:
        for pixels in (store.read(torch.tensor([at])) for at in range(len(store))):
            found.append(_of_image(_image(pixels[0].cpu().numpy())))
            told(total)
    return _gathered(found)


@cached_per_store
def digests_of(store: ImageStore) -> list[bytes]:
    """A digest of each stored picture, at the size it is learned at."""
    found: list[bytes] = []
    for start in range(0, len(store), 500):
        index = torch.arange(start, min(start + 500, len(store)))
        part = store.read(index).cpu().numpy()
        found += [hashlib.blake2b(pixels.tobytes(), digest_size=16).digest() for pixels in part]
    return found


def foreign_share(dataset: SemiDataset) -> float:
    """Share of the unlabeled pictures that `check` would call unlike the labeled ones."""
    labeled = torch.unique(dataset.labeled)
    others = dataset.unlabeled[~torch.isin(dataset.unlabeled, labeled)]
    if not len(others):
        return 0.0
    known, asked = (_features_of_some(dataset.images, part) for part in (labeled, others))
    return float(strangers(known, asked).mean())


def _features_of_some(store: ImageStore, positions: torch.Tensor) -> NDArray[np.float32]:
    """Of at most `SAMPLED` pictures, spread evenly."""
    some = positions[evenly_spaced(len(positions), SAMPLED)]
    parts = (store.read(part).cpu().numpy() for part in torch.split(some, 100))
    small = (
        pictures.resize_and_crop(_image(one), (SIDE, SIDE), 3) for part in parts for one in part
    )
    return np.stack([look(pixels) for pixels in small])


def _of_file(path: str) -> Look:
    with Image.open(path) as image:
        image.load()
        return _of_image(image)


def _of_image(image: Image.Image) -> Look:
    # In place, as training does it: a copy takes a damaged orientation amiss.
    ImageOps.exif_transpose(image, in_place=True)
    grey = image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I")
    # As training sees it, but for its size: formats and modes may differ.
    image = pictures.convert_image(image, 3)
    digest = hashlib.blake2b(repr(image.size).encode(), digest_size=16)
    digest.update(image.tobytes())
    small = pictures.resize_and_crop(image, (SIDE, SIDE), 3)
    picture = _image(small)
    return Look(
        digest.digest(),
        perceptual_hash(picture),
        miniature(picture),
        look(small),
        image.size,
        grey,
    )


def _image(pixels: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))


def _gathered(found: Sequence[Look | None]) -> Looks:
    seen = [one for one in found if one is not None]

    def stacked(parts: list[NDArray[Any]], width: int, kind: type) -> NDArray[Any]:
        return np.stack(parts) if parts else np.empty((0, width), dtype=kind)

    return Looks(
        [one is not None for one in found],
        [one.digest for one in seen],
        stacked([one.hash for one in seen], 16, np.uint8),
        stacked([one.miniature for one in seen], 256, np.uint8),
        stacked([one.features for one in seen], 8, np.float32),
        [one.size for one in seen],
        all(one.grey for one in seen),
    )
