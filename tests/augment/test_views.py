"""Views: normalized, reproducible, and traceable as one graph."""

from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from fullmatch.augment.kinds import Strong
from fullmatch.augment.views import VIEWS, Augmenter
from fullmatch.core import Appearance
from tests.augment.pictures import PICTURES

RGB = Appearance(mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
GRAY = Appearance(mean=(0.3,), std=(0.2,), flip=False, padding=1)
PIXELS = Appearance(mean=(0.0,), std=(1 / 255,))  # leaves pixel values unchanged


def numbered(batch: int, side: int) -> Tensor:
    """Equal images in which every pixel has a different value."""
    return (
        torch.arange(side * side, dtype=torch.uint8).view(1, 1, side, side).repeat(batch, 1, 1, 1)
    )


def test_plain_view_is_the_normalized_image() -> None:
    images = PICTURES["photographs-rgb"]()
    mean, std = torch.tensor(RGB.mean), torch.tensor(RGB.std)
    expected = (images.double() / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    view = Augmenter(RGB)(images, "plain")
    assert view.dtype == torch.float32
    torch.testing.assert_close(view.double(), expected, atol=1e-5, rtol=0)


def test_plain_view_is_cropped_in_the_center() -> None:
    images = numbered(2, 14)
    appearance = Appearance(mean=(0.0,), std=(1 / 255,), crop=8)
    view = Augmenter(appearance)(images, "plain")
    torch.testing.assert_close(view, images[:, :, 3:11, 3:11].float())


@pytest.mark.parametrize("strong", ["torchssl", "released"])
def test_weak_view_draws_every_flip_and_window_evenly(strong: Strong) -> None:
    torch.manual_seed(1)
    side, padding = 6, 2
    appearance = Appearance(mean=(0.0,), std=(1 / 255,), padding=padding)
    images = numbered(20_000, side)
    mode = "reflect" if strong == "torchssl" else "constant"
    windows = []
    for source in (images[:1].float(), images[:1].float().flip(3)):
        padded = nn.functional.pad(source, (padding,) * 4, mode)
        windows.append(padded.unfold(2, side, 1).unfold(3, side, 1).reshape(-1, side * side))
    candidates = torch.cat(windows)  # 2 flips x 5 x 5 offsets
    views = Augmenter(appearance, strong)(images, "weak").round().flatten(1)
    matches = (views[:, None] == candidates).all(dim=2)
    assert (matches.sum(dim=1) == 1).all()
    assert stats.chisquare(matches.sum(dim=0).numpy()).pvalue > 0.01


def test_no_flip_if_the_appearance_forbids_it() -> None:
    images = numbered(200, 8)
    appearance = Appearance(mean=(0.0,), std=(1 / 255,), flip=False, padding=0)
    torch.testing.assert_close(Augmenter(appearance)(images, "weak"), images.float())


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("strong", ["torchssl", "released"])
def test_crop_sets_the_size_of_every_view(view: str, strong: Strong) -> None:
    images = torch.zeros(4, 3, 40, 36, dtype=torch.uint8)
    appearance = Appearance(mean=RGB.mean, std=RGB.std, crop=28)
    assert Augmenter(appearance, strong)(images, view).shape == (4, 3, 28, 28)


@pytest.mark.parametrize(("strong", "side"), [("torchssl", 32), ("released", 24)])
def test_order_of_randaugment_and_crop(strong: Strong, side: int) -> None:
    class Recorder(nn.Module):
        draws = 5

        def forward(self, images: Tensor, chance: Tensor) -> Tensor:
            self.images = images
            assert chance.shape == (5, len(images))
            return torch.full_like(images, 7)

    images = PICTURES["photographs-rgb"]()
    augmenter = Augmenter(Appearance(mean=RGB.mean, std=RGB.std, crop=24), strong)
    recorder = Recorder()
    augmenter.strong_kind = recorder  # type: ignore[assignment]
    view = augmenter(images, "strong")
    assert recorder.images.shape == (len(images), 3, side, side)
    torch.testing.assert_close(view, augmenter.normalize(torch.full_like(view, 7)))


@pytest.mark.parametrize("view", VIEWS)
def test_random_numbers_drawn_before_give_the_same_view(view: str) -> None:
    images = PICTURES["photographs-rgb"]()
    augmenter = Augmenter(RGB)
    torch.manual_seed(3)
    chance = augmenter.draw(images, view)
    state = torch.get_rng_state()
    expected = augmenter(images, view, chance)
    assert torch.equal(torch.get_rng_state(), state)  # nothing more is drawn
    torch.manual_seed(3)
    assert torch.equal(augmenter(images, view), expected)


def test_strong_views_of_equal_images_differ() -> None:
    images = PICTURES["photographs-rgb"]()[5:6].repeat(64, 1, 1, 1)
    torch.manual_seed(2)
    assert len(Augmenter(RGB)(images, "strong").unique(dim=0)) >= 62


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("strong", "pictures"), [("torchssl", "photographs-rgb"), ("released", "digits")]
)
def test_traces_as_one_graph_and_repeats(view: str, strong: Strong, pictures: str) -> None:
    torch.compiler.reset()
    images = PICTURES[pictures]()
    augmenter = Augmenter(RGB if images.shape[1] == 3 else GRAY, strong)
    compiled: Any = torch.compile(augmenter, fullgraph=True, backend="aot_eager")
    torch.manual_seed(3)
    eager = augmenter(images, view)
    torch.manual_seed(3)
    assert torch.equal(augmenter(images, view), eager)
    torch.manual_seed(3)
    assert torch.equal(compiled(images, view), eager)
    if view != "plain":
        assert not torch.equal(compiled(images, view), eager)


def test_has_no_state_for_a_checkpoint() -> None:
    assert Augmenter(RGB).state_dict() == {}
    assert {"mean", "std"} <= {name for name, _ in Augmenter(RGB).named_buffers()}


def test_errors_for_unknown_names_list_the_valid_ones() -> None:
    images = PICTURES["digits"]()
    with pytest.raises(ValueError, match=r"'plain', 'weak', 'strong'.*'medium'"):
        Augmenter(GRAY)(images, "medium")
    with pytest.raises(ValueError, match=r"'torchssl', 'released'.*'other'"):
        Augmenter(GRAY, "other")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(2, 1, 8, 8),
        torch.zeros(2, 3, 8, 8, dtype=torch.uint8),
        torch.zeros(1, 8, 8, dtype=torch.uint8),
        torch.zeros(2, 1, 8, 4, dtype=torch.uint8),  # too small for a padding of 4
    ],
)
def test_rejects_wrong_images(images: Tensor) -> None:
    with pytest.raises(ValueError, match=r"images must (be uint8|have sides)"):
        Augmenter(PIXELS)(images, "weak")


def test_rejects_wrong_appearance() -> None:
    with pytest.raises(ValueError, match=r"appearance must have 1 or 3 means.*got 2 and 2"):
        Augmenter(Appearance(mean=(0.1, 0.2), std=(0.1, 0.2)))
