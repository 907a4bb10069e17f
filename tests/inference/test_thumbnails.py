"""What a browser shows of a file."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.inference.thumbnails import make_thumbnail, open_picture


def thumbnail(image: Image.Image, side: int = 32) -> Image.Image:
    return Image.open(io.BytesIO(make_thumbnail(image, side)))


def test_keeps_proportions_and_enlarges_nothing() -> None:
    assert thumbnail(Image.new("RGB", (200, 100))).size == (32, 16)
    assert thumbnail(Image.new("L", (8, 5))).size == (8, 5)
    assert thumbnail(Image.new("RGB", (4000, 1))).size == (32, 1)


def test_upright_and_without_metadata(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    exif[0x010F] = "a camera"
    Image.new("RGB", (40, 20)).save(tmp_path / "a.jpg", exif=exif)
    image = thumbnail(open_picture(str(tmp_path / "a.jpg")))
    assert image.size == (16, 32)
    assert not image.getexif()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F"])
def test_every_pixel_mode(mode: str) -> None:
    assert thumbnail(Image.new(mode, (9, 9))).mode == "RGB"


def test_transparent_becomes_white() -> None:
    pixels = np.asarray(thumbnail(Image.new("RGBA", (9, 9), (255, 0, 0, 0))))
    assert pixels.min() > 250


def test_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(FileNotFoundError):
        open_picture(str(tmp_path / "pipe.png"))
