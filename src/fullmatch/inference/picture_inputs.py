"""Pictures as users give them: paths, folders, patterns, images, and arrays of any layout."""

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fullmatch.data.stores.encoded import PicturePlace
from fullmatch.errors import UserError
from fullmatch.inference.prediction import Item, list_items

# One picture, a folder or pattern of them, a batch as one array, or a sequence of any of these.
Pictures = str | PathLike[str] | Image.Image | NDArray[Any] | Iterable[Any]
CHANNELS = (1, 3, 4)  # gray, RGB, RGBA
CHANNELS_FIRST = (1, 3)  # four would more often be four gray pictures


def list_pictures(given: Pictures) -> Iterator[Item]:
    """Files and images, one per picture, in the order given."""
    if isinstance(given, str | PathLike):
        yield from list_items([fspath(given)])
    elif isinstance(given, Image.Image | PicturePlace):
        yield given
    elif hasattr(given, "__array__"):
        yield from map(to_image, split_array(np.asarray(given)))
    elif isinstance(given, Iterable):
        for each in given:
            yield from list_pictures(each)
    else:
        raise UserError(
            f"cannot predict {type(given).__name__}; give paths, Pillow images, or uint8 arrays"
        )


def split_array(pixels: NDArray[Any]) -> Iterable[NDArray[Any]]:
    """The pictures of an array; three dimensions are one picture if one of them is channels."""
    if pixels.ndim == 2:
        return (pixels,)
    if pixels.ndim == 3:
        one = pixels.shape[2] in CHANNELS or pixels.shape[0] in CHANNELS_FIRST
        return (pixels,) if one else pixels
    if pixels.ndim == 4:
        return pixels
    raise UserError(
        f"an array of shape {pixels.shape} is not a picture; expected (height, width), "
        "(height, width, channels), or a batch of them"
    )


def to_image(pixels: NDArray[Any]) -> Image.Image:
    """A picture of 0 to 255 with its channels first or last, or without them if it is gray."""
    if pixels.dtype != np.uint8:
        raise UserError(
            f"pixels are {pixels.dtype}, expected uint8 from 0 to 255; convert them, such as with "
            "(255 * pixels).astype('uint8')"
        )
    if pixels.ndim == 3 and pixels.shape[2] not in CHANNELS:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim == 3 and pixels.shape[2] not in CHANNELS:
        raise UserError(
            f"a picture of shape {pixels.shape} has {pixels.shape[2]} channels, expected 1, 3 or 4"
        )
    return Image.fromarray(np.ascontiguousarray(pixels))
