"""Fingerprints of pictures: what is needed to find duplicates and outliers.

`check` makes one pass with `fingerprint_files` or `fingerprint_source`; training makes one pass
with `compute_digests`, at the size that it trains on.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fullmatch.data.dataset import SemiDataset, Source
from fullmatch.data.quality.duplicates import gray_thumbnail, perceptual_hash
from fullmatch.data.quality.outliers import extract_features, find_outliers
from fullmatch.data.stores import pictures
from fullmatch.data.stores.encoded import EncodedPictures
from fullmatch.data.stores.features import FeatureStore
from fullmatch.data.stores.files import PictureFileList
from fullmatch.data.stores.image_store import ImageStore, cached_per_store, evenly_spaced

SIDE = 32  # of the small picture that features are computed from
OUTLIER_SAMPLE = 2000  # labeled and unlabeled pictures that `outlier_share` looks at
ProgressCallback = Callable[[int], object]  # called after each picture with the total number


def ignore_progress(total: int) -> None:
    """For callers that show no progress."""


class Fingerprint(NamedTuple):
    """What the checks compare, computed from one decoded picture."""

    digest: bytes  # of the decoded pixels: equal for two files of the same picture
    hash: NDArray[np.uint8]
    thumbnail: NDArray[np.uint8]
    features: NDArray[np.float32]
    size: tuple[int, int]  # width, height
    is_gray: bool


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of the readable pictures, one row per picture."""

    readable: list[bool]  # one entry per requested picture
    digests: list[bytes]
    hashes: NDArray[np.uint8]
    thumbnails: NDArray[np.uint8]
    features: NDArray[np.float32]
    sizes: list[tuple[int, int]]
    all_gray: bool


def fingerprint_files(paths: Sequence[str], report_progress: ProgressCallback) -> Fingerprints:
    """Decode every picture file once and compute its fingerprint."""
    return fingerprint_encoded(PictureFileList(paths), report_progress)


def fingerprint_encoded(
    encoded: EncodedPictures, report_progress: ProgressCallback
) -> Fingerprints:
    """The same for pictures in files of any kind."""

    def read(position: int) -> Fingerprint:
        return _fingerprint_file(encoded.open(position))

    results = []
    for result in pictures.map_in_threads(
        lambda position: pictures.try_read(read, position), range(len(encoded))
    ):
        results.append(result)
        report_progress(len(encoded))
    return _stack(results)


def fingerprint_source(source: Source, report_progress: ProgressCallback) -> Fingerprints:
    """Compute the fingerprints of decoded images: the training images, then the test images."""
    stores = [source.images, *([source.test] if source.test is not None else [])]
    results, total = [], sum(map(len, stores))
    for store in stores:
        for position in range(len(store)):
            pixels = store.read(torch.tensor([position]))[0].cpu().numpy()
            results.append(_fingerprint_image(_to_pil(pixels)))
            report_progress(total)
    return _stack(results)


@cached_per_store
def compute_digests(store: ImageStore) -> list[bytes]:
    """Read every image of a store once and hash its pixels, at the size that training uses."""
    digests: list[bytes] = []
    for start in range(0, len(store), 500):
        index = torch.arange(start, min(start + 500, len(store)))
        batch = store.read(index).cpu().numpy()
        # Equal rows of features may well be different samples, unlike equal pictures.
        marks = map(str, index.tolist()) if isinstance(store, FeatureStore) else repeat("")
        digests += [
            hashlib.blake2b(pixels.tobytes(), digest_size=16, key=mark.encode()).digest()
            for pixels, mark in zip(batch, marks, strict=False)
        ]
    return digests


def outlier_share(dataset: SemiDataset) -> float:
    """The share of the unlabeled images that `check` would report as outliers."""
    labeled = torch.unique(dataset.labeled)
    unlabeled = dataset.unlabeled[~torch.isin(dataset.unlabeled, labeled)]
    if not len(unlabeled) or isinstance(dataset.images, FeatureStore):
        return 0.0
    outliers = find_outliers(
        _sample_features(dataset.images, labeled), _sample_features(dataset.images, unlabeled)
    )
    return float(outliers.mean())


def _sample_features(store: ImageStore, positions: torch.Tensor) -> NDArray[np.float32]:
    """Features of at most `OUTLIER_SAMPLE` images, evenly spaced."""
    sample = positions[evenly_spaced(len(positions), OUTLIER_SAMPLE)]
    features = []
    for index in torch.split(sample, 100):
        for pixels in store.read(index).cpu().numpy():
            small = pictures.resize_and_crop(_to_pil(pixels), (SIDE, SIDE), 3)
            features.append(extract_features(small))
    return np.stack(features)


def _fingerprint_file(file: str | BinaryIO) -> Fingerprint:
    with Image.open(file) as image:
        image.load()
        return _fingerprint_image(image)


def _fingerprint_image(image: Image.Image) -> Fingerprint:
    # In place, as in training: copying the image fails on damaged EXIF.
    ImageOps.exif_transpose(image, in_place=True)
    is_gray = pictures.is_gray(image)
    # Converted as in training, except for the size: file formats and modes may differ.
    image = pictures.convert_image(image, 3)
    digest = hashlib.blake2b(repr(image.size).encode(), digest_size=16)
    digest.update(image.tobytes())
    pixels = pictures.resize_and_crop(image, (SIDE, SIDE), 3)
    small = _to_pil(pixels)
    return Fingerprint(
        digest=digest.digest(),
        hash=perceptual_hash(small),
        thumbnail=gray_thumbnail(small),
        features=extract_features(pixels),
        size=image.size,
        is_gray=is_gray,
    )


def _to_pil(pixels: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))


def _stack(results: Sequence[Fingerprint | None]) -> Fingerprints:
    fingerprints = [result for result in results if result is not None]

    def stack(rows: list[NDArray[Any]], width: int, dtype: type) -> NDArray[Any]:
        return np.stack(rows) if rows else np.empty((0, width), dtype=dtype)

    return Fingerprints(
        readable=[result is not None for result in results],
        digests=[one.digest for one in fingerprints],
        hashes=stack([one.hash for one in fingerprints], 16, np.uint8),
        thumbnails=stack([one.thumbnail for one in fingerprints], 256, np.uint8),
        features=stack([one.features for one in fingerprints], 8, np.float32),
        sizes=[one.size for one in fingerprints],
        all_gray=all(one.is_gray for one in fingerprints),
    )
