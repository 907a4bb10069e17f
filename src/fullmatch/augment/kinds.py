"""The kinds of views by name: what happens to an image after a random flip and crop."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from fullmatch.augment.geometry import MOTIONS
from fullmatch.augment.randaugment import OPERATIONS, RandAugment
from fullmatch.config.schema import ViewConfig
from fullmatch.errors import UserError
from fullmatch.plugins import is_reference, load_object

Strong = Literal["torchssl", "released"]
OwnFunction = Callable[[Tensor, float], Tensor]
COLORS = tuple(name for name in OPERATIONS if name not in MOTIONS)


class OwnView(nn.Module):
    """A function of the user. It draws its own random numbers, so it needs none beforehand."""

    draws = 0

    def __init__(self, name: str, strength: float) -> None:
        super().__init__()
        self.name, self.strength = name, strength
        self.function: OwnFunction = load_object(name, "view")
        if not callable(self.function):
            raise UserError(f"the view {name} is not a function; make it one of images, strength")

    def forward(self, images: Tensor, chance: Tensor) -> Tensor:
        try:
            view = self.function(images, self.strength)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(
                f"the view {self.name} failed ({reason}); it is called with images "
                f"{tuple(images.shape)} in uint8 and a strength of {self.strength:g}"
            ) from error
        if not is_usable(view, images):
            what = type(view).__name__
            if isinstance(view, Tensor):
                what = f"{view.dtype} of shape {tuple(view.shape)} on {view.device}"
            raise UserError(
                f"the view {self.name} returned {what}; return pixels from 0 to 255, in uint8 or "
                f"float, of shape {tuple(images.shape)} on {images.device}"
            )
        return view


def is_usable(view: object, images: Tensor) -> bool:
    """Whether it is a batch of pixels like the images."""
    if not isinstance(view, Tensor) or view.shape != images.shape:
        return False
    if view.device != images.device:
        return False
    return view.dtype == torch.uint8 or view.is_floating_point()


def build_kind(name: str, settings: ViewConfig, variant: Strong) -> RandAugment | OwnView | None:
    """What a view does besides a flip and a crop; None for nothing."""
    if is_reference(name):
        return OwnView(name, settings.strength)
    if name in ("plain", "flip_crop"):
        return None
    published = variant == "torchssl"
    count = settings.operations or (3 if published else 2)
    cutout = (0.0, 0.5) if published else (0.5, 0.5)
    return RandAugment(
        count=0 if name == "cutout" else count,
        probability=1.0 if published else 0.5,
        cutout=cutout if name in ("cutout", "randaugment") else (0.0, 0.0),
        fill=(125, 123, 114) if published else (127, 127, 127),
        names={"color": COLORS, "geometry": tuple(MOTIONS)}.get(name, tuple(OPERATIONS)),
        strength=settings.strength,
    )
