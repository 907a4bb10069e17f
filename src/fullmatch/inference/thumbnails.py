"""Pictures as any browser can show them: upright, not too large, without their metadata."""

import io
import os

from PIL import Image, ImageOps

from fullmatch.data.stores import pictures


def open_picture(path: str) -> Image.Image:
    """Open a picture file; anything else, such as a pipe, is not there."""
    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    return Image.open(path)


def make_thumbnail(image: Image.Image, side: int) -> bytes:
    """A JPEG of the first frame, at most `side` pixels wide and high."""
    image.draft(None, (side, side))  # lets JPEG skip detail that would not show
    image = ImageOps.exif_transpose(image)
    scale = min(1.0, side / max(image.size))
    width, height = (max(1, round(scale * length)) for length in image.size)
    pixels = pictures.resize_and_crop(image, (height, width), 3)
    buffer = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(buffer, "JPEG", quality=90, subsampling=0)
    return buffer.getvalue()
