"""Duplicates are found however they were saved; similar pictures are not duplicates."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.data.quality.duplicates import (
    connected_groups,
    find_exact_duplicates,
    find_near_duplicates,
    gray_thumbnail,
    perceptual_hash,
)
from tests.own_pictures import COLORS, picture


def near_duplicates(images: list[Image.Image]) -> list[list[int]]:
    colors = [np.asarray(i.convert("RGB"), np.float32).mean(axis=(0, 1)) for i in images]
    return find_near_duplicates(
        np.stack([perceptual_hash(image) for image in images]),
        np.stack([gray_thumbnail(image) for image in images]),
        np.stack(colors),
    )


def compress(image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=40)
    return Image.open(buffer).convert("RGB")


CHANGES = {
    "compressed": compress,
    "smaller": lambda image: image.resize((72, 60)),
    "darker": lambda image: Image.fromarray((np.asarray(image) * 0.95).astype(np.uint8)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_duplicates_are_found(change: str) -> None:
    originals = [picture(kind, seed, (144, 120)) for kind in COLORS for seed in range(30)]
    groups = near_duplicates([*originals, *map(CHANGES[change], originals)])
    expected = [[at, at + len(originals)] for at in range(len(originals))]
    assert all(group in expected for group in groups)
    assert len(groups) >= 0.98 * len(expected)


def test_mirrored_and_recolored_pictures_are_not_duplicates() -> None:
    image = picture("brick", 1)
    blue = Image.fromarray(np.asarray(image)[:, :, ::-1].copy())
    mirrored = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert near_duplicates([image, mirrored, blue]) == []


def test_handwritten_digits_are_not_duplicates_of_each_other() -> None:
    store = data.load("digits").images
    pixels = store.read(torch.arange(600))[:, 0].numpy()
    assert len(near_duplicates([Image.fromarray(one) for one in pixels])) <= 1


def test_one_picture_and_none() -> None:
    assert near_duplicates([picture("brick", 0)]) == []
    hashes, thumbnails = np.empty((0, 16), np.uint8), np.empty((0, 256), np.uint8)
    assert find_near_duplicates(hashes, thumbnails, np.empty((0, 3))) == []


def test_equal_digests_form_groups() -> None:
    assert find_exact_duplicates([b"a", b"b", b"a", b"c", b"b", b"a"]) == [[0, 2, 5], [1, 4]]


def test_groups_are_connected_through_a_third_member() -> None:
    assert connected_groups(np.array([(4, 2), (0, 1), (2, 9)])) == [[0, 1], [2, 4, 9]]
    assert connected_groups(np.array([(7, 3), (3, 7)])) == [[3, 7]]
    assert connected_groups(np.empty((0, 2), np.int64)) == []
