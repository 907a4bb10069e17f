"""Semi-supervised image classification as a scikit-learn estimator: -1 in y means unlabeled."""

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fullmatch.data.dataset import Source, measure_appearance
from fullmatch.data.sources.picture_files import PictureFiles
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError
from fullmatch.estimator.inputs import (
    Array,
    allows_negative_pixels,
    are_paths,
    check_options,
    parse_labels,
    resolve_pixel_range,
    to_bytes,
    to_channels_first,
)
from fullmatch.evaluation.scores import predict_probabilities
from fullmatch.experiment.build import EVALUATION_BATCH
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.process import restoring_process_settings

SMALL = 16  # side up to which pictures get the smallest network


class FullMatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier for pictures of which only a few are labeled.

    Pictures are arrays (N, H, W), (N, H, W, C) or (N, C, H, W), rows of pixels (N, F) with
    `image_shape`, or paths of files. In `y`, -1, NaN, None and "" mean unlabeled.

    Parameters
    ----------
    algorithm
        See `fullmatch list algorithms`.
    model
        See `fullmatch list models`; None: one that suits the size of the pictures.
    weights
        A file that the network named by `model` starts from: safetensors, or a PyTorch state dict.
    steps
        Training steps; None: the default.
    batch
        Labeled pictures per step; None: the default.
    image_shape
        Of rows of pixels, such as (8, 8), (3, 32, 32) or (1, -1).
    image_size
        Side that picture files are resized to; None: one that suits the median picture.
    pixel_range
        Values of black and white; None: integers are 0 to 255, and so are floats, unless the
        largest in training is 1 or less.
    flip
        Whether a mirror image keeps its class; not so for digits and text.
    settings
        Any other settings, such as ("optimizer.rate=0.01",).
    random_state
        Seed of everything that is random; other random generators are not changed.
    """

    def __init__(
        self,
        algorithm: str = "fullmatch",
        *,
        model: str | None = None,
        weights: str | os.PathLike[str] | None = None,
        steps: int | None = None,
        batch: int | None = None,
        image_shape: tuple[int, ...] | None = None,
        image_size: int | None = None,
        pixel_range: tuple[float, float] | None = None,
        flip: bool = True,
        settings: Sequence[str] = (),
        random_state: Any = 0,
    ) -> None:
        self.algorithm = algorithm
        self.model = model
        self.weights = weights
        self.steps = steps
        self.batch = batch
        self.image_shape = image_shape
        self.image_size = image_size
        self.pixel_range = pixel_range
        self.flip = flip
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train on all pictures, and on the labels that are known."""
        self._clear_fit()
        try:
            return self._fit(X, y)
        except BaseException as error:
            self._clear_fit()  # or new classes might stay with an old network
            if isinstance(error, UserError):  # as scikit-learn's callers expect
                raise ValueError(str(error)) from None
            raise

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(N, C) probabilities, columns as in `classes_`."""
        check_is_fitted(self)
        store = self._make_store(X)
        device = choose_device()
        try:
            probs = predict_probabilities(
                self.classifier_.to(device), store, batch=EVALUATION_BATCH, device=device
            )
        except UserError as error:
            raise ValueError(str(error)) from None
        finally:
            self.classifier_.to("cpu")  # so that it can be pickled for any machine
        return probs.double().cpu().numpy()

    def predict(self, X: Any) -> Array:
        """(N,) the most likely class of each picture."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]  # type: ignore[no-any-return]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the pictures whose labels are known."""
        predicted = self.predict(X)
        labels, known = parse_labels(y, len(predicted))
        if not known.any():
            raise ValueError("y: expected at least one known label, got none")
        weight = np.ones(len(predicted)) if sample_weight is None else np.asarray(sample_weight)
        if weight.shape != predicted.shape:
            raise ValueError(
                f"sample_weight: expected {len(predicted)} weights, one per picture, "
                f"got shape {weight.shape}"
            )
        return float(accuracy_score(labels[known], predicted[known], sample_weight=weight[known]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = not allows_negative_pixels(self.pixel_range)
        return tags

    def _clear_fit(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _fit(self, X: Any, y: ArrayLike) -> Self:
        check_options(**self.get_params())
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        if are_paths(X):
            labels, known = parse_labels(y, len(X))
        else:
            X = self._check_array(X, reset=True)
            labels, known = parse_labels(y, len(X))
            self.pixel_range_ = resolve_pixel_range(X, self.pixel_range)
        if not known.any():
            raise ValueError("y: expected some labels, got only unlabeled pictures")
        self.classes_, positions = np.unique(labels[known], return_inverse=True)
        if len(self.classes_) < 2:
            (only,) = self.classes_.tolist()
            raise ValueError(f"y: expected at least 2 classes, got only one class, {only!r}")
        codes = np.full(len(labels), -1)
        codes[known] = positions
        with restoring_process_settings():
            self.classifier_ = self._train(self._make_source(X, codes))
        self.image_shape_ = self.classifier_.image  # (channels, height, width)
        return self

    def _train(self, source: Source) -> Classifier:
        model = self.model
        if model is None and min(source.images.shape[1:]) <= SMALL:
            model = "wrn-10-1"
        settings = (self.settings,) if isinstance(self.settings, str) else self.settings
        config = resolve(
            data=source.name,
            algorithm=self.algorithm,
            model=model,
            weights=None if self.weights is None else Path(self.weights),
            steps=int(self.steps) if isinstance(self.steps, Integral) else self.steps,
            seed=self._choose_seed(),
            assignments=(
                f"data.flip={'true' if self.flip else 'false'}",
                *(() if self.batch is None else (f"training.batch={self.batch}",)),
                *settings,
            ),
        )
        with tempfile.TemporaryDirectory(prefix="fullmatch-") as place:
            run = start(config, RunFolder(Path(place) / "run", new=True), source)
            for note in run.dataset.notes:
                if note != run.dataset.balance_note:  # uneven classes need no warning
                    warnings.warn(note, stacklevel=4)
            for _ in run.records():
                pass
            return Classifier.load(run.folder.model)

    def _make_source(self, X: Any, codes: Array) -> Source:
        names, flip = tuple(map(str, self.classes_.tolist())), bool(self.flip)
        if are_paths(X):
            pairs = list(zip(map(os.fspath, X), codes.tolist(), strict=True))
            source = PictureFiles(
                labeled=[(path, str(code)) for path, code in pairs if code >= 0],
                unlabeled=[path for path, code in pairs if code < 0],
                test=[],
            ).to_source("pictures", self.image_size)
            appearance = replace(source.appearance, flip=flip)
            return replace(source, classes=names, appearance=appearance)
        images = self._to_images(X)
        appearance = measure_appearance(images, flip=flip)
        # A row of pixels has no border that could be reflected.
        padding = min(appearance.padding, min(images.shape[1:]) - 1)
        return Source(
            name="arrays",
            images=images,
            labels=torch.from_numpy(codes),
            classes=names,
            appearance=replace(appearance, padding=padding),
        )

    def _make_store(self, X: Any) -> ImageStore:
        """Pictures to predict, of the same shape as in training."""
        if are_paths(X):
            channels, *size = self.image_shape_
            return FileStore([os.fspath(path) for path in X], (size[0], size[1]), channels)
        if not hasattr(self, "pixel_range_"):
            got = "an array" if len(X) else "none"
            raise ValueError(f"X: expected paths of pictures, as in training, got {got}")
        store = self._to_images(self._check_array(X, reset=False))
        if store.shape != self.image_shape_:
            raise ValueError(
                f"X: expected pictures of {self.image_shape_} as in training, got {store.shape}"
            )
        return store

    def _check_array(self, X: Any, *, reset: bool) -> Array:
        """An array of numbers; rows must have as many pixels as in training."""
        checked: Array = np.asarray(X)
        rows = checked.ndim < 3
        if rows:
            checked = validate_data(self, X, reset=reset)
        if rows and self.image_shape is None:
            raise ValueError(
                f"X: got rows of {checked.shape[1]} pixels; give image_shape, such as (8, 8)"
            )
        if checked.dtype.kind not in "biuf" or not len(checked):
            raise ValueError(
                f"X: expected pictures of numbers, got {checked.dtype} of shape {checked.shape}"
            )
        return checked

    def _to_images(self, X: Array) -> TensorStore:
        pixels = to_bytes(to_channels_first(X, self.image_shape), *self.pixel_range_)
        return TensorStore(torch.from_numpy(np.ascontiguousarray(pixels)))

    def _choose_seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))
