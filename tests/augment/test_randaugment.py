"""RandAugment draws operations by its table, one sequence per image, and applies them as PIL."""

from collections.abc import Callable

import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from scipy import stats
from torch import Tensor

from fullmatch.augment.randaugment import (
    NUMBER,
    OPERATIONS,
    RandAugment,
    apply_operations,
    to_integers,
)
from tests.augment.pictures import PICTURES, by_pil
from tests.augment.test_geometry import MOVES

PIL_OPERATIONS: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "autocontrast": lambda picture, _: ImageOps.autocontrast(picture),
    "brightness": lambda picture, v: ImageEnhance.Brightness(picture).enhance(v),
    "color": lambda picture, v: ImageEnhance.Color(picture).enhance(v),
    "contrast": lambda picture, v: ImageEnhance.Contrast(picture).enhance(v),
    "equalize": lambda picture, _: ImageOps.equalize(picture),
    "identity": lambda picture, _: picture,
    "posterize": lambda picture, v: ImageOps.posterize(picture, int(v)),
    "sharpness": lambda picture, v: ImageEnhance.Sharpness(picture).enhance(v),
    "solarize": lambda picture, v: ImageOps.solarize(picture, v),  # type: ignore[arg-type]
    **{name: pil for name, (_, _, pil) in MOVES.items()},
}
NAMES = list(OPERATIONS)


def torchssl() -> RandAugment:
    return RandAugment(3, 1.0, (0.0, 0.5), (125, 123, 114))


def one_by_pil(picture: Image.Image, operation: int, magnitude: float) -> Image.Image:
    return PIL_OPERATIONS[NAMES[operation]](picture, magnitude)


def draws(randaugment: RandAugment, batch: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(5)
    operation, magnitude = randaugment.choose_operations(torch.rand(randaugment.draws, batch)[:-3])
    assert operation.shape == magnitude.shape == (randaugment.count, batch)
    return operation.flatten(), magnitude.flatten()


@pytest.mark.parametrize("name", NAMES)
def test_each_operation_equals_pil(name: str) -> None:
    images = PICTURES["photographs-rgb"]()
    low, high = OPERATIONS[name]
    magnitude = low + (high - low) * torch.rand(len(images))
    operation = torch.full((len(images),), NUMBER[name])
    ours = apply_operations(images, operation[None], magnitude[None])
    assert torch.equal(ours, by_pil(images, one_by_pil, operation, magnitude))


@pytest.mark.parametrize("pictures", ["noise-rgb", "noise-wide", "photographs-rgb", "digits"])
@pytest.mark.parametrize("released", [False, True])
def test_whole_sequence_and_cutout_equal_pil(pictures: str, released: bool) -> None:
    images = PICTURES[pictures]()
    _, channels, height, width = images.shape
    gray = (127, 127, 127)
    randaugment = RandAugment(2, 0.5, (0.5, 0.5), gray) if released else torchssl()
    fill = tuple(randaugment.fill.tolist())[:channels]

    torch.manual_seed(6)
    chance = torch.rand(randaugment.draws, len(images))
    operations, magnitudes = randaugment.choose_operations(chance[:-3])
    side, x, y = chance[-3:]
    side = torch.full_like(side, 0.5 * width) if released else 0.5 * side * width
    expected = images
    for operation, magnitude in zip(operations, magnitudes, strict=True):
        expected = by_pil(expected, one_by_pil, operation, magnitude)

    def paint(picture: Image.Image, x: float, y: float, side: float) -> Image.Image:
        x0, y0 = int(max(0, x - side / 2)), int(max(0, y - side / 2))
        box = (x0, y0, min(width, x0 + side), min(height, y0 + side))
        ImageDraw.Draw(picture).rectangle(box, fill)
        return picture

    expected = by_pil(expected, paint, x * width, y * height, side)
    assert torch.equal(randaugment(images, chance), expected)


def test_operations_are_drawn_evenly() -> None:
    operation, _ = draws(torchssl(), 20_000)
    counts = operation.bincount(minlength=len(OPERATIONS))
    assert len(counts) == 14
    assert stats.chisquare(counts.numpy()).pvalue > 0.01


def test_operations_of_one_image_are_drawn_independently() -> None:
    torch.manual_seed(7)
    first, second, _ = torchssl().choose_operations(torch.rand(6, 20_000))[0]
    pairs = (first * 14 + second).bincount(minlength=14 * 14)
    assert stats.chisquare(pairs.numpy()).pvalue > 0.01


@pytest.mark.parametrize("name", [name for name, (low, high) in OPERATIONS.items() if low < high])
def test_magnitudes_are_uniform_over_their_range(name: str) -> None:
    operation, magnitude = draws(torchssl(), 20_000)
    low, high = OPERATIONS[name]
    drawn = magnitude[operation == NUMBER[name]]
    assert stats.kstest(drawn.numpy(), stats.uniform(low, high - low).cdf).pvalue > 0.01


def test_posterize_keeps_four_to_seven_bits() -> None:
    operation, magnitude = draws(torchssl(), 20_000)
    bits = magnitude[operation == NUMBER["posterize"]].floor().long()
    counts = bits.bincount()
    assert counts[:4].sum() == 0
    assert stats.chisquare(counts[4:].numpy()).pvalue > 0.01
    assert len(counts) == 8


def test_released_operations_are_drawn_evenly_with_probability_one_half() -> None:
    operation, _ = draws(RandAugment(2, 0.5, (0.5, 0.5), (127, 127, 127)), 20_000)
    counts = operation.bincount(minlength=14).double()
    expected = torch.full((14,), 0.5 / 14, dtype=torch.float64)
    expected[NUMBER["identity"]] += 0.5
    assert stats.chisquare(counts.numpy(), (expected * counts.sum()).numpy()).pvalue > 0.01


@pytest.mark.parametrize("pictures", ["photographs-rgb", "digits"])
def test_equal_images_get_different_sequences(pictures: str) -> None:
    image = PICTURES[pictures]()[3:4]
    torch.manual_seed(8)
    results = torchssl()(image.expand(64, -1, -1, -1), torch.rand(9, 64))
    assert len(results.unique(dim=0)) >= 62


def test_released_form_skips_half_of_the_operations() -> None:
    randaugment = RandAugment(2, 0.5, (0.5, 0.5), (127, 127, 127))
    assert randaugment.draws == 9
    assert torchssl().draws == 9
    operation, _ = draws(randaugment, 20_000)
    skipped = (operation == NUMBER["identity"]).float().mean()
    assert skipped == pytest.approx(0.5 + 0.5 / 14, abs=0.01)


@pytest.mark.parametrize("below", [1, 3, 8, 9, 14, 64, 201, 4096])
def test_largest_chance_stays_below(below: int) -> None:
    largest = torch.tensor(1 - 2**-24)
    assert to_integers(largest, below) == below - 1
    assert to_integers(torch.zeros(()), below) == 0
