"""Semi-supervised classification as a scikit-learn estimator: -1 in y means unlabeled."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fullmatch.data.dataset import Source
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.errors import UserError
from fullmatch.estimator.inputs import (
    Array,
    InputKind,
    allows_negative_pixels,
    detect_kind,
    parse_labels,
    resolve_pixel_range,
)
from fullmatch.estimator.options import check_options, uses_frozen_body
from fullmatch.estimator.run import TrainingOptions, predict_store, train_model
from fullmatch.estimator.sources import (
    source_of_arrays,
    source_of_features,
    source_of_files,
    to_feature_store,
    to_images,
)
from fullmatch.training.process import restoring_process_settings


class FullMatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier for pictures, or for features of anything, of which only a few are labeled.

    Pictures are arrays (N, H, W), (N, H, W, C) or (N, C, H, W), rows of pixels (N, F) with
    `image_shape`, or paths of files. Rows of numbers (N, F) without `image_shape` are features,
    such as embeddings of texts or sounds. In `y`, -1, NaN, None and "" mean unlabeled.

    On features, and on pictures with a frozen body, only a linear head is trained. Three strategies
    are compared on held-out labels, and the best one is used: the labels only, labels propagated to
    similar samples, and these followed by training with `algorithm`.

    Parameters
    ----------
    algorithm
        See `fullmatch list algorithms`.
    model
        The network for pictures: see `fullmatch list models`. "pretrained": the best one whose
        ImageNet weights are on this machine, as they are. None: one that suits the size of the
        pictures, or "pretrained" if the body is frozen.
    body
        "trained": the network is trained. "frozen": its published weights stay as they are, and
        only a head is trained. None: frozen for "pretrained" and for features, else trained.
    weights
        A file that the network named by `model` starts from: safetensors, or a PyTorch state dict.
    steps
        Training steps; None: the default.
    batch
        Labeled samples per step; None: the default.
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

    Attributes
    ----------
    classes_
        The classes, sorted.
    strategies_
        How the strategies compared on held-out labels: name, accuracy, interval, and which one was
        chosen; empty where there was no choice.
    classifier_
        The trained model, a `fullmatch.Classifier`.
    n_features_in_, feature_names_in_
        Of rows: how many columns they have, and their names, if X was a data frame.
    image_shape_, pixel_range_
        Of pictures: (channels, height, width), and the values of black and white in arrays.
    """

    def __init__(
        self,
        algorithm: str = "fullmatch",
        *,
        model: str | None = None,
        body: str | None = None,
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
        self.body = body
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
        """Train on all samples, and on the labels that are known."""
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
        try:
            probs = predict_store(self.classifier_, store)
        except UserError as error:
            raise ValueError(str(error)) from None
        return probs.double().cpu().numpy()

    def predict(self, X: Any) -> Array:
        """(N,) the most likely class of each sample."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]  # type: ignore[no-any-return]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the samples whose labels are known."""
        predicted = self.predict(X)
        labels, known = parse_labels(y, len(predicted))
        if not known.any():
            raise ValueError("y: expected at least one known label, got none")
        weight = np.ones(len(predicted)) if sample_weight is None else np.asarray(sample_weight)
        if weight.shape != predicted.shape:
            raise ValueError(
                f"sample_weight: expected {len(predicted)} weights, one per sample, "
                f"got shape {weight.shape}"
            )
        return float(accuracy_score(labels[known], predicted[known], sample_weight=weight[known]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, which `fullmatch.Classifier.load` reads."""
        check_is_fitted(self)
        self.model_.save(Path(path))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = self.image_shape is not None and not allows_negative_pixels(
            self.pixel_range
        )
        return tags

    def _clear_fit(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _fit(self, X: Any, y: ArrayLike) -> Self:
        self.input_kind_ = detect_kind(X, self.image_shape)
        check_options(self.input_kind_, **self.get_params())
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        if self.input_kind_ is not InputKind.PATHS:
            X = self._check_array(X, reset=True)
        labels, known = parse_labels(y, len(X))
        if self.input_kind_ is InputKind.PICTURES:
            self.pixel_range_ = resolve_pixel_range(X, self.pixel_range)
        if not known.any():
            raise ValueError("y: expected some labels, got only unlabeled samples")
        self.classes_, positions = np.unique(labels[known], return_inverse=True)
        if len(self.classes_) < 2:
            (only,) = self.classes_.tolist()
            raise ValueError(f"y: expected at least 2 classes, got only one class, {only!r}")
        codes = np.full(len(labels), -1)
        codes[known] = positions
        with restoring_process_settings():
            source = self._make_source(X, codes)
            self.model_ = train_model(source, self._list_options())
        self.classifier_, self.strategies_ = self.model_.classifier, self.model_.strategies
        if self.input_kind_ is not InputKind.FEATURES:
            self.image_shape_ = self.classifier_.image  # (channels, height, width)
        return self

    @property
    def _frozen(self) -> bool:
        return uses_frozen_body(self.input_kind_, self.model, self.body)

    def _list_options(self) -> TrainingOptions:
        return TrainingOptions(
            algorithm=self.algorithm,
            model=self.model,
            weights=self.weights,
            frozen=self._frozen,
            steps=self.steps,
            batch=self.batch,
            settings=self.settings,
            seed=self._choose_seed(),
        )

    def _make_source(self, X: Any, codes: Array) -> Source:
        """The samples and labels of the run."""
        names, flip = tuple(map(str, self.classes_.tolist())), bool(self.flip)
        if self.input_kind_ is InputKind.FEATURES:
            return source_of_features(X, codes, names)
        if self.input_kind_ is InputKind.PATHS:
            size = self.image_size
            return source_of_files(X, codes, names, image_size=size, flip=flip, frozen=self._frozen)
        images = to_images(X, self.image_shape, self.pixel_range_)
        return source_of_arrays(images, codes, names, flip=flip)

    def _make_store(self, X: Any) -> ImageStore:
        """Samples to predict, of the same shape as in training."""
        expected, kind = self.input_kind_, detect_kind(X, self.image_shape)
        if kind is InputKind.PATHS and expected is not InputKind.FEATURES:
            channels, *size = self.image_shape_
            return FileStore([os.fspath(path) for path in X], (size[0], size[1]), channels)
        if expected is InputKind.PATHS:
            got = "an array" if len(X) else "none"
            raise ValueError(f"X: expected paths of pictures, as in training, got {got}")
        if expected is InputKind.FEATURES:
            if kind is not InputKind.FEATURES:
                raise ValueError(f"X: expected rows of features, as in training, got {kind.value}")
            return to_feature_store(self._check_array(X, reset=False))
        checked = self._check_array(X, reset=False)
        store = to_images(checked, self.image_shape, self.pixel_range_)
        if store.shape != self.image_shape_:
            raise ValueError(
                f"X: expected pictures of {self.image_shape_} as in training, got {store.shape}"
            )
        return store

    def _check_array(self, X: Any, *, reset: bool) -> Array:
        """An array of numbers; rows must have as many columns as in training."""
        if self.input_kind_ is InputKind.FEATURES:
            rows: Array = validate_data(self, X, reset=reset, dtype=(np.float64, np.float32))
            return rows
        checked: Array = np.asarray(X)
        if checked.ndim < 3:
            checked = validate_data(self, X, reset=reset)
            if self.image_shape is None:
                raise ValueError(
                    f"X: got rows of {checked.shape[1]} pixels; give image_shape, such as (8, 8)"
                )
        if checked.dtype.kind not in "biuf" or not len(checked):
            raise ValueError(
                f"X: expected pictures of numbers, got {checked.dtype} of shape {checked.shape}"
            )
        return checked

    def _choose_seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))
