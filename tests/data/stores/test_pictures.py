"""Every kind of picture file becomes upright pixels of one size, or counts as unreadable."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.data.stores.pictures import decode, read_header, try_read


def decode_gray(path: Path) -> np.ndarray:
    return decode(str(path), (64, 64), 1)[0]


def decode_color(path: Path, side: int = 8) -> np.ndarray:
    return decode(str(path), (side, side), 3)


def test_sixteen_bit_gray_is_scaled_not_clipped(tmp_path: Path, gradient: np.ndarray) -> None:
    deep = gradient.astype(np.uint16) * 257
    for name in ("a.png", "a.tif"):
        Image.fromarray(deep).save(tmp_path / name)
        assert (decode_gray(tmp_path / name) == gradient).all()
        header = read_header(str(tmp_path / name))
        assert (header.short_side, header.is_gray) == (64, True)


@pytest.mark.parametrize("scale", [1, 1 / 255])
def test_float_gray(tmp_path: Path, gradient: np.ndarray, scale: float) -> None:
    Image.fromarray(gradient.astype(np.float32) * np.float32(scale)).save(tmp_path / "a.tif")
    assert (decode_gray(tmp_path / "a.tif") == gradient).all()


def test_thirty_two_bit_gray(tmp_path: Path, gradient: np.ndarray) -> None:
    Image.fromarray(gradient.astype(np.int32) * 257).save(tmp_path / "a.tif")
    assert (decode_gray(tmp_path / "a.tif") == gradient).all()


def test_transparent_pictures_are_put_on_white(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    clear.putpixel((0, 0), (255, 0, 0, 255))
    clear.save(tmp_path / "rgba.png")
    clear.convert("LA").save(tmp_path / "la.png")
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([9, 9, 9, 255, 0, 0])
    palette.putpixel((0, 0), 1)
    palette.save(tmp_path / "palette.png", transparency=0)
    for name in ("rgba.png", "la.png", "palette.png"):
        pixels = decode_color(tmp_path / name)
        assert (pixels[:, 4, 4] == 255).all(), name
        assert pixels[1, 0, 0] < 255, name
    assert decode_color(tmp_path / "palette.png")[:, 0, 0].tolist() == [255, 0, 0]


def test_cmyk(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg")
    red, green, blue = decode_color(tmp_path / "a.jpg").mean((1, 2))
    assert red > 220
    assert green < 40
    assert blue < 40


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png"])
def test_first_frame_of_an_animation(tmp_path: Path, name: str) -> None:
    first, second = Image.new("RGB", (8, 8), (255, 0, 0)), Image.new("RGB", (8, 8), (0, 0, 255))
    first.save(tmp_path / name, save_all=True, append_images=[second], lossless=True)
    assert decode_color(tmp_path / name)[:, 4, 4].tolist() == [255, 0, 0]


def test_exif_orientation_is_applied(tmp_path: Path, gradient: np.ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(gradient[:, ::-1].copy()).save(tmp_path / "a.jpg", exif=exif, quality=95)
    assert np.abs(decode_gray(tmp_path / "a.jpg").astype(int) - gradient).max() < 8


def test_short_side_is_resized_and_long_side_center_cropped(tmp_path: Path) -> None:
    pixels = np.zeros((10, 30, 3), np.uint8)
    pixels[:, 10:20] = 200
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert (decode_color(tmp_path / "a.png", 10) == 200).all()
    assert decode_color(tmp_path / "a.png", 10).shape == (3, 10, 10)


def test_one_pixel_and_black_and_white(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), (1, 2, 3)).save(tmp_path / "a.bmp")
    assert decode_color(tmp_path / "a.bmp")[:, 7, 7].tolist() == [1, 2, 3]
    Image.new("1", (9, 9), 1).save(tmp_path / "b.png")
    assert (decode_color(tmp_path / "b.png") == 255).all()
    assert read_header(str(tmp_path / "b.png")) == ((9, 9), True)


def test_large_jpeg_is_close_to_its_full_decoding(tmp_path: Path, gradient: np.ndarray) -> None:
    big = Image.fromarray(gradient).resize((640, 640), Image.Resampling.BILINEAR)
    big.save(tmp_path / "a.jpg", quality=95)
    assert np.abs(decode_gray(tmp_path / "a.jpg").astype(int) - gradient).max() < 8


def test_wrong_extension_is_still_read(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    assert decode_color(tmp_path / "a.jpg")[:, 0, 0].tolist() == [1, 2, 3]


def bomb() -> bytes:
    """A tiny PNG that claims 50,000 x 50,000 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data


def truncated(tmp_path: Path) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.jpg")
    return (tmp_path / "whole.jpg").read_bytes()[:-1500]


def test_unreadable(tmp_path: Path) -> None:
    damaged = {
        "empty": b"",
        "page": b"<!DOCTYPE html><html></html>",
        "bomb": bomb(),
        "cut": truncated(tmp_path),
    }
    for name, content in damaged.items():
        path = tmp_path / f"{name}.jpg"
        path.write_bytes(content)
        assert try_read(lambda path: decode(path, (8, 8), 3), str(path)) is None, name
    (tmp_path / "link.jpg").symlink_to(tmp_path / "nowhere.jpg")
    assert try_read(read_header, str(tmp_path / "link.jpg")) is None
    assert try_read(read_header, str(tmp_path / "whole.jpg")) == ((64, 64), False)
