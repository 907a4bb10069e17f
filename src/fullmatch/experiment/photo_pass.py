"""Features of photos before there is a run: one pass through a pretrained network.

Photos are looked at in one size, which takes a third of the time of the pass before training.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data import ImageStore
from fullmatch.data.quality.photo_features import PhotoFeatures
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.experiment.feature_pass import FITTED, FeaturePass, Progress, embed_rows
from fullmatch.experiment.frozen_model import load_frozen_model
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.planning import PHOTO_SIDE
from fullmatch.models.frozen import Embedding
from fullmatch.models.pretrained import WeightsFile, preferred_weights

LARGE_SIDE = 128  # of pictures from which the network looks at the larger size
SMALL_SIZE, LARGE_SIZE = 160, 224

Halves = NDArray[np.float16]


def find_photo_weights(channels: int, side: int) -> WeightsFile | None:
    """Weights that know pictures of this kind; None for small or gray ones, or if there are none.

    `side` is the shorter one, in pixels.
    """
    if channels == 1 or side < PHOTO_SIDE:
        return None
    return preferred_weights(choose_device())


class PhotoDescriber:
    """A pretrained network that describes photos, batch by batch."""

    def __init__(self, weights: WeightsFile, side: int) -> None:
        size = SMALL_SIZE if side < LARGE_SIDE else LARGE_SIZE
        # The published normalization takes the place of this one.
        appearance = Appearance(mean=(0.5,) * 3, std=(0.25,) * 3, padding=1)
        self.model = load_frozen_model(weights.model, appearance, side, None, (size,))
        self.weights = weights
        self.feature_pass = FeaturePass(self.model, None, choose_device())

    @property
    def width(self) -> int:
        """Of a descriptor."""
        return sum(self.model.widths)

    @property
    def batch(self) -> int:
        return self.feature_pass.batch

    def describe(self, images: Tensor) -> Halves:
        """(B, 3, H, W) bytes -> (B, D)."""
        described: Halves = self.feature_pass.describe_batch(images, 0)[:, 0]
        return described

    def embed(self, descriptors: Halves) -> PhotoFeatures:
        """Center and reduce descriptors (N, D) by their own statistics."""
        sample = descriptors[evenly_spaced(len(descriptors), FITTED).numpy()]
        fitted = torch.from_numpy(sample.astype(np.float32))
        embedding = Embedding.fit(fitted, self.model.widths)
        rows = embed_rows(embedding, descriptors[:, None])[:, 0].float()
        embeddings = torch.nn.functional.normalize(rows.float(), dim=1).numpy()
        return PhotoFeatures(descriptors, embeddings, self.weights.model)


def describe_stores(
    stores: Sequence[ImageStore], progress: Progress = lambda done, total: None
) -> PhotoFeatures | None:
    """Features of the pictures of some stores, one after another; None if they are not photos."""
    channels, *sides = stores[0].shape
    total = sum(map(len, stores))
    weights = find_photo_weights(channels, min(sides)) if total else None
    if weights is None:
        return None
    describer = PhotoDescriber(weights, min(sides))
    rows = np.empty((total, describer.width), np.float16)
    done = 0
    for store in stores:
        for index in torch.split(torch.arange(len(store)), describer.batch):
            rows[done : done + len(index)] = describer.describe(store.read(index))
            done += len(index)
            progress(done, total)
    return describer.embed(rows)
