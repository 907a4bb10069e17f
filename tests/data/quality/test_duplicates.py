"""Copies are found, however they were saved; pictures of one kind are no copies."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.data.quality.duplicates import (
    exact_groups,
    joined,
    miniature,
    near_groups,
    perceptual_hash,
)
from tests.own_pictures import COLORS, picture


def groups(images: list[Image.Image]) -> list[list[int]]:
    colors = [np.asarray(i.convert("RGB"), np.float32).mean(axis=(0, 1)) for i in images]
    hashes = np.stack([perceptual_hash(image) for image in images])
    return near_groups(hashes, np.stack([miniature(i) for i in images]), np.stack(colors))


def saved_again(image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=40)
    return Image.open(buffer).convert("RGB")


CHANGES = {
    "compressed": saved_again,
    "smaller": lambda image: image.resize((72, 60)),
    "darker": lambda image: Image.fromarray((np.asarray(image) * 0.95).astype(np.uint8)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_copies_are_found(change: str) -> None:
    originals = [picture(kind, seed, (144, 120)) for kind in COLORS for seed in range(30)]
    found = groups([*originals, *map(CHANGES[change], originals)])
    right = [[at, at + len(originals)] for at in range(len(originals))]
    assert all(group in right for group in found)
    assert len(found) >= 0.98 * len(right)


def test_mirror_images_and_colors_are_no_copies() -> None:
    image = picture("brick", 1)
    blue = Image.fromarray(np.asarray(image)[:, :, ::-1].copy())
    assert groups([image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), blue]) == []


def test_handwritten_digits_are_no_copies_of_each_other() -> None:
    store = data.load("digits").images
    pixels = store.read(torch.arange(600))[:, 0].numpy()
    assert len(groups([Image.fromarray(one) for one in pixels])) <= 1


def test_one_picture_and_none() -> None:
    assert groups([picture("brick", 0)]) == []
    assert near_groups(np.empty((0, 16), np.uint8), np.empty((0, 256), np.uint8), np.empty(0)) == []


def test_equal_digests_stand_together() -> None:
    assert exact_groups([b"a", b"b", b"a", b"c", b"b", b"a"]) == [[0, 2, 5], [1, 4]]


def test_joined_through_a_third() -> None:
    assert joined([(4, 2), (0, 1), (2, 9)]) == [[0, 1], [2, 4, 9]]
