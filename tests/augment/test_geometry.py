"""Every operation that moves pixels equals its PIL or torchvision counterpart."""

from collections.abc import Callable

import pytest
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn import functional as F

from fullmatch.augment import geometry
from tests.augment.pictures import PICTURES, by_pil


def affine(picture: Image.Image, *matrix: float) -> Image.Image:
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix)


MOVES: dict[str, tuple[float, Callable[..., Tensor], Callable[..., Image.Image]]] = {
    "rotate": (30, geometry.rotate, lambda picture, v: picture.rotate(v)),
    "shear_x": (0.3, geometry.shear_x, lambda p, v: affine(p, 1, v, 0, 0, 1, 0)),
    "shear_y": (0.3, geometry.shear_y, lambda p, v: affine(p, 1, 0, 0, v, 1, 0)),
    "translate_x": (0.3, geometry.translate_x, lambda p, v: affine(p, 1, 0, v * p.width, 0, 1, 0)),
    "translate_y": (0.3, geometry.translate_y, lambda p, v: affine(p, 1, 0, 0, 0, 1, v * p.height)),
}


@pytest.fixture(params=PICTURES, scope="module")
def images(request: pytest.FixtureRequest) -> Tensor:
    return PICTURES[request.param]() | 1  # never black, so that a black border is visible


@pytest.mark.parametrize("name", MOVES)
def test_affine_moves_equal_pil(images: Tensor, name: str) -> None:
    reach, ours, pil = MOVES[name]
    random = torch.Generator().manual_seed(2)
    for _ in range(4):
        amount = reach * (2 * torch.rand(len(images), generator=random) - 1)
        assert torch.equal(ours(images, amount), by_pil(images, pil, amount))


@pytest.mark.parametrize("name", MOVES)
def test_round_amounts_equal_pil(name: str) -> None:
    reach, ours, pil = MOVES[name]
    images = PICTURES["noise-rgb"]() | 1
    amount = torch.linspace(-reach, reach, len(images) - 1).mul(20).round().div(20)
    amount = torch.cat([amount, torch.zeros(1)])
    assert torch.equal(ours(images, amount), by_pil(images, pil, amount))
    assert torch.equal(ours(images, 0 * amount), images)


@pytest.mark.parametrize("reflected", [True, False])
def test_flip_crop_equals_flip_then_pad_then_slice(reflected: bool) -> None:
    images = PICTURES["noise-wide"]()
    height, width, padding = 15, 20, 3
    random = torch.Generator().manual_seed(3)
    flip = torch.rand(len(images), generator=random) < 0.5
    top = torch.randint(17 + 2 * padding - height + 1, (len(images),), generator=random)
    left = torch.randint(23 + 2 * padding - width + 1, (len(images),), generator=random)
    ours = geometry.flip_crop(images, flip, top, left, (height, width), padding, reflected)
    for image, mirrored, y, x, result in zip(images, flip, top, left, ours, strict=True):
        source = image.flip(2) if mirrored else image
        mode = "reflect" if reflected else "constant"
        padded = F.pad(source.float(), (padding,) * 4, mode).to(torch.uint8)
        assert torch.equal(result, padded[:, y : y + height, x : x + width])


def test_cutout_equals_a_pil_rectangle(images: Tensor) -> None:
    height, width = images.shape[2:]
    fill = torch.tensor([125, 123, 114], dtype=torch.uint8)[: images.shape[1]]

    def paint(picture: Image.Image, x: float, y: float, side: float) -> Image.Image:
        x0, y0 = int(max(0, x - side / 2)), int(max(0, y - side / 2))
        box = (x0, y0, min(width, x0 + side), min(height, y0 + side))
        ImageDraw.Draw(picture).rectangle(box, tuple(fill.tolist()))
        return picture

    random = torch.Generator().manual_seed(4)
    for _ in range(4):
        x, y, side = torch.rand(3, len(images), generator=random)
        where = (x * width, y * height, side * width / 2)
        assert torch.equal(geometry.cutout(images, *where, fill), by_pil(images, paint, *where))


def test_cutout_of_size_zero_changes_nothing() -> None:
    images = PICTURES["digits"]()
    center = torch.full((len(images),), 4.0)
    fill = torch.tensor([125], dtype=torch.uint8)
    assert torch.equal(geometry.cutout(images, center, center, 0 * center, fill), images)
