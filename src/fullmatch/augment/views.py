"""The views of an image that algorithms use: plain, weak and strong."""

from typing import get_args

import torch
from torch import Tensor, nn

from fullmatch.augment import geometry
from fullmatch.augment.kinds import OwnView, Strong, build_kind
from fullmatch.augment.randaugment import RandAugment, to_integers
from fullmatch.config.schema import AugmentConfig
from fullmatch.core import Appearance

VIEWS = ("plain", "weak", "strong")
PUBLISHED = AugmentConfig()


class Augmenter(nn.Module):
    """Turns stored images into normalized views.

    Its random numbers can be drawn before the call. A compiler then cannot change their order, so
    eager, compiled and recorded code give the same views.
    """

    mean: Tensor  # (C, 1, 1)
    std: Tensor

    def __init__(
        self,
        appearance: Appearance,
        strong: Strong = "torchssl",
        settings: AugmentConfig = PUBLISHED,
    ) -> None:
        super().__init__()
        if strong not in get_args(Strong):
            raise ValueError(f"strong must be one of {get_args(Strong)}; got {strong!r}")
        if len(appearance.mean) not in (1, 3) or len(appearance.mean) != len(appearance.std):
            raise ValueError(
                "appearance must have 1 or 3 means and as many deviations; "
                f"got {len(appearance.mean)} and {len(appearance.std)}"
            )
        self.appearance = appearance
        self.strong = strong
        self.names = {
            "plain": "plain",
            "weak": settings.weak.name or "flip_crop",
            "strong": settings.strong.name or "randaugment",
        }
        self.weak_kind = build_kind(self.names["weak"], settings.weak, strong)
        self.strong_kind = build_kind(self.names["strong"], settings.strong, strong)
        for name, value in (("mean", appearance.mean), ("std", appearance.std)):
            self.register_buffer(name, torch.tensor(value)[:, None, None], persistent=False)

    @property
    def own(self) -> bool:
        """Whether a view is a function of the user, which may do what a compiler cannot."""
        return isinstance(self.weak_kind, OwnView) or isinstance(self.strong_kind, OwnView)

    def draw(self, images: Tensor, view: str, times: int = 1) -> Tensor:
        """The random numbers (draws, B) for a view of these images, or of `times` as many."""
        if view not in self.names:
            raise ValueError(f"view must be one of {VIEWS}; got {view!r}")
        kind = self._kind(view)
        draws = 0 if self.names[view] == "plain" else 3 + (0 if kind is None else kind.draws)
        return torch.rand(draws, times * len(images), device=images.device)

    def forward(self, images: Tensor, view: str, chance: Tensor | None = None) -> Tensor:
        """`chance` is the result of `draw`; it is drawn here if left out."""
        self._check(images)
        chance = self.draw(images, view) if chance is None else chance
        if self.names[view] == "plain":
            return self.normalize(self._center(images))
        shift, rest = chance[:3], chance[3:]
        kind = self._kind(view)
        if kind is None:
            return self.normalize(self._shift(images, shift))
        if self.strong == "torchssl" and not isinstance(kind, OwnView):
            return self.normalize(self._shift(kind(images, rest), shift))
        return self.normalize(kind(self._shift(images, shift), rest))

    def _kind(self, view: str) -> RandAugment | OwnView | None:
        return {"weak": self.weak_kind, "strong": self.strong_kind}.get(view)

    def normalize(self, images: Tensor) -> Tensor:
        # Not torch's default dtype, which a program may have changed.
        return (images.to(self.mean.dtype) / 255 - self.mean) / self.std

    def _size(self, images: Tensor) -> tuple[int, int]:
        side = self.appearance.crop
        return (images.shape[2], images.shape[3]) if side is None else (side, side)

    def _center(self, images: Tensor) -> Tensor:
        height, width = self._size(images)
        top = round((images.shape[2] - height) / 2)
        left = round((images.shape[3] - width) / 2)
        return images[:, :, top : top + height, left : left + width]

    def _shift(self, images: Tensor, chance: Tensor) -> Tensor:
        """A random flip and a random crop of each image."""
        (height, width), padding = self._size(images), self.appearance.padding
        spare = 2 * padding + 1
        mirrored, down, right = chance
        flip = mirrored < 0.5 if self.appearance.flip else None
        top = to_integers(down, images.shape[2] - height + spare)
        left = to_integers(right, images.shape[3] - width + spare)
        # The released code pads with black; reflection is TorchSSL's.
        reflected = self.strong == "torchssl"
        return geometry.flip_crop(images, flip, top, left, (height, width), padding, reflected)

    def _check(self, images: Tensor) -> None:
        channels, padding = len(self.mean), self.appearance.padding
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != channels:
            raise ValueError(
                f"images must be uint8 of shape (batch, {channels}, height, width); "
                f"got {images.dtype} of shape {tuple(images.shape)}"
            )
        side, least = min(images.shape[2:]), max(self.appearance.crop or 1, padding + 1)
        if side < least:
            raise ValueError(
                f"images must have sides of at least {least} for padding {padding} and crop "
                f"{self.appearance.crop}; got {tuple(images.shape[2:])}"
            )
