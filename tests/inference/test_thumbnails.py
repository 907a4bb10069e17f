"""What a browser is shown of a file."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.inference.thumbnails import open_file, preview


def shown(image: Image.Image, side: int = 32) -> Image.Image:
    return Image.open(io.BytesIO(preview(image, side)))


def test_proportions_stay_and_small_pictures_are_not_enlarged() -> None:
    assert shown(Image.new("RGB", (200, 100))).size == (32, 16)
    assert shown(Image.new("L", (8, 5))).size == (8, 5)
    assert shown(Image.new("RGB", (4000, 1))).size == (32, 1)


def test_upright_and_without_metadata(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    exif[0x010F] = "a camera"
    Image.new("RGB", (40, 20)).save(tmp_path / "a.jpg", exif=exif)
    found = shown(open_file(str(tmp_path / "a.jpg")))
    assert found.size == (16, 32) and not found.getexif()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F"])
def test_every_kind_of_pixels(mode: str) -> None:
    assert shown(Image.new(mode, (9, 9))).mode == "RGB"


def test_transparent_is_white() -> None:
    pixels = np.asarray(shown(Image.new("RGBA", (9, 9), (255, 0, 0, 0))))
    assert pixels.min() > 250


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(FileNotFoundError):
        open_file(str(tmp_path / "pipe.png"))
