"""Views by name and strength, and as functions of the user."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fullmatch.augment.kinds import OwnView
from fullmatch.augment.views import Augmenter
from fullmatch.config import AugmentConfig, ViewConfig
from fullmatch.config.schema import VIEW_KINDS
from fullmatch.core import Appearance
from fullmatch.errors import UserError
from tests.augment.pictures import PICTURES
from tests.own_things import use_own_module

PIXELS = Appearance(mean=(0.0,) * 3, std=(1 / 255,) * 3)  # leaves pixel values unchanged
NAMES = [name for name in VIEW_KINDS if ":" not in name]
VIEWS = """
import torch

noise = 7

def darken(images, strength):
    shade = torch.rand(len(images), 1, 1, 1)
    return images * (1 - strength * shade)

def shrink(images, strength):
    return images[:, :, 1:]

def integers(images, strength):
    return images.long()

def fail(images, strength):
    raise RuntimeError("no such\\ncolor")
"""


@pytest.fixture(autouse=True)
def module(use_module: Callable[[str, str], None]) -> None:
    use_module("own_views", VIEWS)


use_module = pytest.fixture(use_own_module)


def make_view(name: str, strength: float = 1.0, seed: int = 3, **fields: int) -> Tensor:
    settings = AugmentConfig(strong=ViewConfig(name=name, strength=strength, **fields))
    images = PICTURES["photographs-rgb"]()
    torch.manual_seed(seed)
    view: Tensor = Augmenter(PIXELS, settings=settings)(images, "strong")
    return view


def test_the_published_views_have_names() -> None:
    images = PICTURES["photographs-rgb"]()
    named = AugmentConfig(weak=ViewConfig(name="flip_crop"), strong=ViewConfig(name="randaugment"))
    for view in ("weak", "strong"):
        torch.manual_seed(1)
        expected = Augmenter(PIXELS)(images, view)
        torch.manual_seed(1)
        assert torch.equal(Augmenter(PIXELS, settings=named)(images, view), expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_makes_a_view_of_its_own(name: str) -> None:
    view = make_view(name)
    assert view.shape == PICTURES["photographs-rgb"]().shape
    for other in NAMES:
        assert (other == name) is torch.equal(view, make_view(other))


@pytest.mark.parametrize("name", ["color", "geometry", "cutout", "randaugment"])
def test_strength_scales_the_change(name: str) -> None:
    moved = make_view("flip_crop")
    changes = [float((make_view(name, strength) - moved).abs().mean()) for strength in (0.2, 1.0)]
    assert 0 < changes[0] < changes[1]


def test_no_operation_of_strength_0_moves_anything() -> None:
    assert torch.equal(make_view("geometry", 0.0), make_view("flip_crop"))
    assert torch.equal(make_view("cutout", 0.0), make_view("flip_crop"))


def test_more_operations_change_more() -> None:
    moved = make_view("flip_crop")
    few, many = (make_view("color", operations=count) for count in (1, 6))
    assert (few - moved).abs().mean() < (many - moved).abs().mean()


def test_an_own_function_follows_flip_and_crop() -> None:
    assert torch.equal(make_view("own_views:darken", 0.0), make_view("flip_crop"))
    dark = make_view("own_views:darken", 0.5)
    assert dark.mean() < make_view("flip_crop").mean()
    # Its random numbers come from torch's generator, which every step seeds.
    assert torch.equal(dark, make_view("own_views:darken", 0.5))
    assert not torch.equal(dark, make_view("own_views:darken", 0.5, seed=4))


def test_only_own_functions_are_own() -> None:
    own = AugmentConfig(weak=ViewConfig(name="own_views:darken"))
    assert Augmenter(PIXELS, settings=own).own
    assert not Augmenter(PIXELS).own


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_views:shrink", r"returned torch\.float32|returned torch\.uint8 of shape"),
        ("own_views:integers", r"returned torch\.int64 of shape .*; return pixels from 0 to 255"),
        ("own_views:fail", r"failed \(RuntimeError: no such color\); it is called with images"),
        ("own_views:noise", "is not a function"),
        ("own_views:darkn", "has no view 'darkn'; did you mean 'darken'"),
        ("no_such_module:darken", "cannot import 'no_such_module' for the view"),
    ],
)
def test_an_unusable_function_is_one_line(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make_view(name)
    assert "\n" not in str(caught.value)


def test_a_view_elsewhere_is_unusable() -> None:
    view = OwnView("own_views:darken", 1.0)
    view.function = lambda images, strength: images.to("meta")
    with pytest.raises(UserError, match=r"on meta; return .* on cpu"):
        view(PICTURES["photographs-rgb"](), torch.empty(0))


def test_an_unknown_name() -> None:
    with pytest.raises(UserError, match=r"'randaugmnt' is unknown .*did you mean 'randaugment'"):
        ViewConfig(name="randaugmnt")
