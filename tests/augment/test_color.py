"""Every operation on pixel values equals that of PIL."""

from collections.abc import Callable

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from fullmatch.augment import color
from tests.augment.pictures import PICTURES, by_pil

ENHANCED = {
    "brightness": (color.brightness, ImageEnhance.Brightness),
    "color": (color.color, ImageEnhance.Color),
    "contrast": (color.contrast, ImageEnhance.Contrast),
    "sharpness": (color.sharpness, ImageEnhance.Sharpness),
}


@pytest.fixture(params=PICTURES, scope="module")
def images(request: pytest.FixtureRequest) -> Tensor:
    return PICTURES[request.param]()


@pytest.mark.parametrize("name", ENHANCED)
def test_blends_equal_pil(images: Tensor, name: str) -> None:
    ours, enhancer = ENHANCED[name]

    def enhance(picture: Image.Image, factor: float) -> Image.Image:
        return enhancer(picture).enhance(factor)

    random = torch.Generator().manual_seed(1)
    for round_number in range(4):
        factor = torch.rand(len(images), generator=random)
        if round_number == 0:  # short decimals, where the last bit decides the rounding
            factor = torch.linspace(0, 1, len(images)).mul(20).round().div(20)
        assert torch.equal(ours(images, factor), by_pil(images, enhance, factor))


def test_posterize_equals_pil(images: Tensor) -> None:
    for bits in range(1, 9):
        each = torch.full((len(images),), bits)
        assert torch.equal(color.posterize(images, each), by_pil(images, ImageOps.posterize, each))


def test_solarize_equals_pil(images: Tensor) -> None:
    edges = [0.0, 0.5, 1.0, 127.99, 128.0, 255.0, 255.5, 256.0]
    for each in [torch.full((len(images),), edge) for edge in edges]:
        assert torch.equal(color.solarize(images, each), by_pil(images, ImageOps.solarize, each))


@pytest.mark.parametrize(
    ("ours", "pil"),
    [(color.autocontrast, ImageOps.autocontrast), (color.equalize, ImageOps.equalize)],
)
def test_histogram_operations_equal_pil(
    images: Tensor, ours: Callable[[Tensor], Tensor], pil: Callable[..., Image.Image]
) -> None:
    assert torch.equal(ours(images), by_pil(images, pil))


def test_autocontrast_equals_pil_for_every_range() -> None:
    low, high = torch.triu_indices(256, 256)
    pixels = torch.arange(256).clamp(low[:, None], high[:, None])
    images = pixels[::7].view(-1, 1, 16, 16).to(torch.uint8)
    assert torch.equal(color.autocontrast(images), by_pil(images, ImageOps.autocontrast))


def test_equalize_caps_at_white() -> None:
    image = torch.arange(256).mul(300).div(511, rounding_mode="floor").repeat(2)[:484]
    images = image.view(1, 1, 22, 22).to(torch.uint8)
    equal = color.equalize(images)
    assert equal.max() == 255
    assert torch.equal(equal, by_pil(images, ImageOps.equalize))


def test_color_of_one_channel_is_the_identity() -> None:
    images = PICTURES["digits"]()
    assert torch.equal(color.color(images, torch.rand(len(images))), images)


def test_gray_equals_pil_on_a_grid_of_colors() -> None:
    level = torch.arange(0, 256, 3)
    images = torch.cartesian_prod(level, level, level).view(86, 86, 86, 3)
    images = images.permute(0, 3, 1, 2).to(torch.uint8)
    expected = by_pil(images, lambda picture: picture.convert("L").convert("RGB"))
    assert torch.equal(color.to_gray(images).to(torch.uint8).expand(-1, 3, -1, -1), expected)
