"""One picture file as pixels: opened with care, turned upright, converted, and fitted to a size."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
)

Item = TypeVar("Item")
Result = TypeVar("Result")


def attempt(read: Callable[[str], Result], path: str) -> Result | None:
    """What `read` makes of the file, or None when it is not a picture that can be read whole."""
    try:
        return read(path)
    except Exception:  # Damaged files make decoders raise anything, from OSError to IndexError.
        return None


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """`work` of each item in order, some thousands at a time so that millions are no burden."""
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode") as threads:
        for start in range(0, len(items), 4096):
            yield from threads.map(work, items[start : start + 4096])


def glance(path: str) -> tuple[int, bool]:
    """Length of the short side, and whether the picture is grey, from its header alone."""
    with Image.open(path) as image:
        return min(image.size), image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I")


def decode(path: str, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """Pixels (channels, height, width) of the file's first frame."""
    with Image.open(path) as image:
        image.draft(None, (max(size), max(size)))  # lets JPEG skip detail that would not show
        return fit(image, size, channels)


def put(path: str, place: NDArray[np.uint8]) -> bool:
    """Decodes a file into its place, (channels, height, width); whether it could be read."""
    channels, height, width = place.shape
    pixels = attempt(lambda path: decode(path, (height, width), channels), path)
    if pixels is not None:
        place[:] = pixels
    return pixels is not None


def plain(image: Image.Image, channels: int) -> Image.Image:
    """Upright, over white where it is transparent, of so many channels."""
    ImageOps.exif_transpose(image, in_place=True)  # a new one would be a copy, even if upright
    image = _eight_bit(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    mode = "L" if channels == 1 else "RGB"
    return image if image.mode == mode else image.convert(mode)


def fit(image: Image.Image, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """As `plain`, the longer side cropped about the centre."""
    image = plain(image, channels)
    if image.size != (size[1], size[0]):
        image = ImageOps.fit(image, (size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(image).reshape(*size, channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _eight_bit(image: Image.Image) -> Image.Image:
    """Scales deep grey pictures to 0..255, where Pillow's own conversion would clip them."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    pixels = np.asarray(image).astype(np.float64)
    if image.mode.startswith("I;16") or 255 < pixels.max() <= 65535:
        pixels /= 257
    elif image.mode == "F" and pixels.min() >= 0 and pixels.max() <= 1:
        pixels *= 255
    return Image.fromarray(np.rint(pixels).clip(0, 255).astype(np.uint8))
