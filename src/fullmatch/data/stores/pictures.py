"""Decode one picture file to pixels: rotate it upright, convert it and bring it to a size."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
)
CHUNK = 4096  # items queued for threads at a time, which bounds the memory

Item = TypeVar("Item")
Result = TypeVar("Result")


class Header(NamedTuple):
    """What the header of a picture file says, without decoding it."""

    size: tuple[int, int]  # width and height
    is_gray: bool

    @property
    def short_side(self) -> int:
        return min(self.size)


def try_read(read: Callable[[Item], Result], file: Item) -> Result | None:
    """The result of `read(file)`, or None if the file cannot be read as a picture."""
    try:
        return read(file)
    except Exception:  # Damaged files make decoders raise anything, from OSError to IndexError.
        return None


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Apply `function` to each item in threads and yield the results in order."""
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode") as threads:
        for start in range(0, len(items), CHUNK):
            yield from threads.map(function, items[start : start + CHUNK])


def read_header(file: str | BinaryIO) -> Header:
    """Read only the header of a picture file."""
    with Image.open(file) as image:
        return Header(image.size, is_gray(image))


def is_gray(image: Image.Image) -> bool:
    return image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I")


def decode(
    file: str | BinaryIO, size: tuple[int, int], channels: int, *, stretch: bool = False
) -> NDArray[np.uint8]:
    """Decode the first frame of a file to pixels (channels, height, width)."""
    with Image.open(file) as image:
        image.draft(None, (max(size), max(size)))  # lets JPEG skip detail that would not show
        return (resize if stretch else resize_and_crop)(image, size, channels)


def decode_into(file: str | BinaryIO, out: NDArray[np.uint8], *, stretch: bool = False) -> bool:
    """Decode a file into `out` (channels, height, width); return whether it could be read."""
    channels, height, width = out.shape
    pixels = try_read(lambda file: decode(file, (height, width), channels, stretch=stretch), file)
    if pixels is not None:
        out[:] = pixels
    return pixels is not None


def convert_image(image: Image.Image, channels: int) -> Image.Image:
    """Rotate by EXIF, put transparent pictures on white, and convert to 1 or 3 channels."""
    ImageOps.exif_transpose(image, in_place=True)  # not in place, it copies even upright pictures
    image = _to_eight_bit(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    mode = "L" if channels == 1 else "RGB"
    return image if image.mode == mode else image.convert(mode)


def resize_and_crop(image: Image.Image, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """Convert, resize and center-crop to pixels (channels, height, width)."""
    image = convert_image(image, channels)
    if image.size != (size[1], size[0]):
        image = ImageOps.fit(image, (size[1], size[0]), Image.Resampling.BILINEAR)
    return to_pixels(image, channels)


def resize(image: Image.Image, size: tuple[int, int], channels: int) -> NDArray[np.uint8]:
    """Convert and stretch to pixels (channels, height, width), whatever the aspect ratio."""
    image = convert_image(image, channels)
    return to_pixels(image.resize((size[1], size[0]), Image.Resampling.BILINEAR), channels)


def to_pixels(image: Image.Image, channels: int) -> NDArray[np.uint8]:
    pixels = np.asarray(image).reshape(image.height, image.width, channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def to_image(pixels: NDArray[np.uint8]) -> Image.Image:
    """Pixels (channels, height, width) as an image."""
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))


def _to_eight_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit, 32-bit and float gray to 0..255; Pillow's own conversion would clip them."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    pixels = np.asarray(image).astype(np.float64)
    if image.mode.startswith("I;16") or 255 < pixels.max() <= 65535:
        pixels /= 257
    elif image.mode == "F" and pixels.min() >= 0 and pixels.max() <= 1:
        pixels *= 255
    return Image.fromarray(np.rint(pixels).clip(0, 255).astype(np.uint8))
