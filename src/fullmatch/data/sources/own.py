"""Data sets of the user's own, by `module:function`."""

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.data.dataset import Source
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.errors import UserError
from fullmatch.plugins import is_reference, load_object


def is_own_data(name: str) -> bool:
    """Whether a name is `module:function`, and not a path."""
    return is_reference(name) and not Path(name).exists()


def load_own_data(name: str) -> Source:
    """The source that a function returns, under the name by which a config finds it again."""
    function = load_object(name, "data set")
    if not callable(function):
        raise UserError(f"the data set {name} is not a function; make it one without arguments")
    try:
        source = call_once(function)
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"the data set {name} failed ({reason}); it is called without arguments"
        ) from error
    if not isinstance(source, Source):
        what = type(source).__name__
        raise UserError(
            f"the data set {name} returned {what}; return a fullmatch.data.Source, such as "
            "fullmatch.data.from_arrays makes"
        )
    check_parts(source, name)
    return dataclasses.replace(source, name=name)


@cache
def call_once(function: Callable[[], object]) -> object:
    """Reading may take long, and a command needs the same images several times."""
    return function()


def check_parts(source: Source, name: str) -> None:
    """`UserError` for images, labels and classes that do not go together."""
    classes = source.classes
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise UserError(f"the data set {name} needs 2 classes or more with different names")
    check_labels(source.labels, source.images, len(classes), -1, f"{name}: labels")
    if (source.test is None) != (source.test_labels is None):
        raise UserError(f"the data set {name} has one of test and test_labels; return both or none")
    if source.test is None or source.test_labels is None:
        if source.benchmark:
            raise UserError(
                f"the data set {name} is a benchmark without test images; return test and "
                "test_labels, or leave benchmark out"
            )
        return
    check_labels(source.test_labels, source.test, len(classes), 0, f"{name}: test_labels")
    if source.test.shape != source.images.shape:
        raise UserError(
            f"the data set {name} has test images of {source.test.shape} and others of "
            f"{source.images.shape}; return one shape"
        )


def check_labels(labels: Tensor, images: ImageStore, count: int, least: int, what: str) -> None:
    if not isinstance(labels, Tensor) or labels.dtype != torch.int64:
        raise UserError(f"the data set {what} are not a tensor of int64; make them one")
    if labels.shape != (len(images),):
        raise UserError(
            f"the data set {what} have the shape {tuple(labels.shape)} for {len(images)} images; "
            "return one label per image"
        )
    outside = labels[(labels < least) | (labels >= count)]
    if len(outside):
        unlabeled = ", or -1 for unlabeled" if least < 0 else ""
        raise UserError(
            f"the data set {what} have the value {int(outside[0])}, expected 0 to {count - 1}"
            f"{unlabeled}"
        )


def own_benchmark(name: str) -> Benchmark | None:
    """Facts about a data set by `module:function`; None if it is not a benchmark."""
    if not is_own_data(name):
        return None
    source = load_own_data(name)
    if not source.benchmark or source.test is None:
        return None
    appearance = source.appearance
    return Benchmark(
        name=name,
        train=len(source.images),
        test=len(source.test),
        num_classes=source.num_classes,
        classes=source.classes,
        shape=source.images.shape,
        mean=appearance.mean,
        std=appearance.std,
        flip=appearance.flip,
        padding=appearance.padding,
        crop=appearance.crop,
        bundled=True,
    )
