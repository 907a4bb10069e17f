"""A photo is recognized mirrored, cropped and compressed, and is not mistaken for others."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageOps

from fullmatch.data.quality.alignment import Likeness, Overlap, find_overlap, prepare
from tests.photos import KINDS, photo


def compare(first: Image.Image, second: Image.Image) -> Overlap | None:
    return find_overlap(prepare(first), prepare(second))


def crop(image: Image.Image, share: float) -> Image.Image:
    """A part of it, away from the middle."""
    width, height = (round(share * length) for length in image.size)
    left, top = (image.width - width) // 3, image.height - height
    return image.crop((left, top, left + width, top + height))


def compress(image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=50)
    return Image.open(buffer).convert("RGB")


def brighten(image: Image.Image) -> Image.Image:
    return image.point(lambda level: min(255, int(1.15 * level + 8)))


CHANGES: dict[str, tuple[Callable[[Image.Image], Image.Image], Likeness]] = {
    "compressed": (compress, Likeness.COPY),
    "brighter": (brighten, Likeness.COPY),
    "larger": (lambda image: image.resize((360, 300)), Likeness.COPY),
    "mirrored": (ImageOps.mirror, Likeness.MIRROR),
    "90 %": (lambda image: crop(image, 0.9), Likeness.CROP),
    "75 %": (lambda image: crop(image, 0.75), Likeness.CROP),
    "60 %": (lambda image: crop(image, 0.6), Likeness.CROP),
    "mirrored crop": (lambda image: ImageOps.mirror(crop(image, 0.75)), Likeness.MIRRORED_CROP),
    "compressed crop": (lambda image: compress(crop(image, 0.7)), Likeness.CROP),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_the_same_photo(kind: str, change: str) -> None:
    edit, likeness = CHANGES[change]
    for seed in range(3):
        original = photo(kind, seed)
        overlap = compare(original, edit(original))
        assert overlap is not None
        assert overlap.likeness is likeness
        assert not overlap.first_is_inner
        turned = compare(edit(original), original)
        assert turned is not None
        assert turned.likeness is likeness
        assert turned.first_is_inner == (likeness in (Likeness.CROP, Likeness.MIRRORED_CROP))


@pytest.mark.parametrize("kind", KINDS)
def test_photos_of_one_kind_are_different(kind: str) -> None:
    pictures = [prepare(photo(kind, seed)) for seed in range(12)]
    pairs = [(a, b) for a in range(12) for b in range(a)]
    assert [pair for pair in pairs if find_overlap(pictures[pair[0]], pictures[pair[1]])] == []


def test_pictures_without_detail_are_not_compared() -> None:
    gradient = np.linspace(0, 255, 120).astype(np.uint8)
    smooth = Image.fromarray(np.tile(gradient, (100, 1))).convert("RGB")
    blank = Image.new("RGB", (120, 100), "white")
    assert compare(smooth, smooth) is None
    assert compare(blank, blank) is None
    assert compare(blank, photo("balls", 0)) is None
    assert compare(Image.new("RGB", (300, 2)), photo("balls", 0)) is None


def test_another_color_is_another_picture() -> None:
    original = photo("balls", 3)
    red, green, blue = original.split()
    assert compare(original, original) is not None
    assert compare(original, Image.merge("RGB", (green, red, blue))) is None


def test_another_object_in_the_same_scene_is_another_picture() -> None:
    original, other = photo("balls", 5), photo("bricks", 5)
    changed = original.copy()
    changed.paste(other.crop((0, 0, 100, 80)), (30, 20))
    assert compare(original, changed) is None
