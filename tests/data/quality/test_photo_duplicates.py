"""Photos with similar features are compared, and only real duplicates are reported."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from fullmatch.data.quality.alignment import Likeness
from fullmatch.data.quality.photo_duplicates import (
    MOST_PREPARED,
    NEIGHBORS,
    PhotoComparison,
    PhotoDuplicate,
    propose_pairs,
)
from tests.photos import photo


def test_pairs_are_similar_and_few() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 16))
    rows[150] = rows[3] + 0.1 * rng.normal(size=16)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    pairs = propose_pairs(rows)
    assert [3, 150] in pairs.tolist()
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(pairs) <= NEIGHBORS * len(rows)
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert propose_pairs(rows[:1]).shape == (0, 2)
    assert propose_pairs(rows[:2]).shape[1] == 2


def test_the_inner_picture_repeats_the_outer_one() -> None:
    images = {
        "whole": photo("balls", 1),
        "part": photo("balls", 1).crop((10, 10, 120, 100)),
        "mirror": ImageOps.mirror(photo("balls", 1)),
        "other": photo("balls", 2),
    }
    comparison = PhotoComparison(list(images), lambda name: images[name].copy())
    assert comparison.compare(0, 1) == PhotoDuplicate(1, 0, Likeness.CROP)
    assert comparison.compare(1, 0) == PhotoDuplicate(1, 0, Likeness.CROP)
    assert comparison.compare(0, 2) == PhotoDuplicate(2, 0, Likeness.MIRROR)
    assert comparison.compare(0, 3) is None


def test_unreadable_pictures_repeat_nothing(tmp_path: Path) -> None:
    photo("balls", 1).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("not a picture")
    names = [str(tmp_path / name) for name in ("a.png", "b.png", "gone.png")]
    comparison = PhotoComparison(names, Image.open)
    assert comparison.compare(0, 1) is None
    assert comparison.compare(2, 0) is None


def test_files_are_upright_and_on_white(tmp_path: Path) -> None:
    original = photo("bricks", 1)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    original.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.jpg", exif=exif)
    original.convert("RGBA").save(tmp_path / "b.png")
    comparison = PhotoComparison([str(tmp_path / "a.jpg"), str(tmp_path / "b.png")], Image.open)
    duplicate = comparison.compare(0, 1)
    assert duplicate is not None
    assert duplicate.likeness is Likeness.COPY


def test_memory_is_bounded() -> None:
    opened: list[str] = []

    def open_picture(name: str) -> Image.Image:
        opened.append(name)
        return Image.new("RGB", (40, 30))

    comparison = PhotoComparison([str(at) for at in range(MOST_PREPARED + 2)], open_picture)
    for at in range(MOST_PREPARED + 2):
        comparison.prepare(at)
    assert len(comparison.prepared) == MOST_PREPARED
    comparison.prepare(MOST_PREPARED)  # still there
    assert len(opened) == MOST_PREPARED + 2
    comparison.prepare(0)
    assert len(opened) == MOST_PREPARED + 3
