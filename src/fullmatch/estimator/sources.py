"""From what users pass to what a run reads: pictures in memory, in files, or rows of features."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fullmatch.data.dataset import Source, measure_appearance
from fullmatch.data.sources.picture_files import PictureFiles, choose_form
from fullmatch.data.stores.features import FeatureStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.estimator.inputs import Array, to_bytes, to_channels_first
from fullmatch.experiment.given_features import feature_source
from fullmatch.experiment.pretrained_plan import frozen_size


def source_of_features(rows: Array, codes: Array, classes: tuple[str, ...]) -> Source:
    return feature_source(to_feature_store(rows), torch.from_numpy(codes), classes)


def to_feature_store(rows: Array) -> FeatureStore:
    return FeatureStore(torch.from_numpy(np.array(rows)))  # a copy that torch may write to


def source_of_files(
    paths: Sequence[Any],
    codes: Array,
    classes: tuple[str, ...],
    *,
    image_size: int | None,
    flip: bool,
    frozen: bool,
) -> Source:
    """Picture files at one size; for a frozen body at the size that `fullmatch train` takes."""
    files = [os.fspath(path) for path in paths]
    if image_size is None and frozen:
        image_size = frozen_size(choose_form(files)[0])
    pairs = list(zip(files, codes.tolist(), strict=True))
    source = PictureFiles(
        labeled=[(path, str(code)) for path, code in pairs if code >= 0],
        unlabeled=[path for path, code in pairs if code < 0],
        test=[],
    ).to_source("pictures", image_size)
    return replace(source, classes=classes, appearance=replace(source.appearance, flip=flip))


def source_of_arrays(
    images: TensorStore, codes: Array, classes: tuple[str, ...], *, flip: bool
) -> Source:
    appearance = measure_appearance(images, flip=flip)
    # A row of pixels has no border that could be reflected.
    padding = min(appearance.padding, min(images.shape[1:]) - 1)
    return Source(
        name="arrays",
        images=images,
        labels=torch.from_numpy(codes),
        classes=classes,
        appearance=replace(appearance, padding=padding),
    )


def to_images(
    X: Array, image_shape: tuple[int, ...] | None, pixel_range: tuple[float, float]
) -> TensorStore:
    pixels = to_bytes(to_channels_first(X, image_shape), *pixel_range)
    return TensorStore(torch.from_numpy(np.ascontiguousarray(pixels)))
