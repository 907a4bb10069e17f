"""The estimator's parameters: which values they take, and which go together."""

import difflib
from numbers import Integral
from typing import Any

import numpy as np

from fullmatch.errors import did_you_mean
from fullmatch.estimator.inputs import InputKind

PRETRAINED = "pretrained"  # as a model: the best weights on this machine
BODIES = ("trained", "frozen")
PICTURE_OPTIONS = ("model", "weights", "image_size", "pixel_range")  # which features have none of


def check_options(kind: InputKind, **options: Any) -> None:
    """Check the parameters that are not settings of a run."""
    if not isinstance(options["algorithm"], str):
        raise ValueError(
            "algorithm: expected a name that fullmatch list algorithms shows, "
            f"got {options['algorithm']!r}"
        )
    if not isinstance(options["flip"], bool | np.bool_):
        raise ValueError(f"flip: expected True or False, got {options['flip']!r}")
    size = options["image_size"]
    if size is not None and not (isinstance(size, Integral) and int(size) >= 1):
        raise ValueError(f"image_size: expected an integer of 1 or more, got {size!r}")
    check_body(options["body"])
    if kind is InputKind.FEATURES:
        check_feature_options(**options)
    else:
        check_model(options["model"], options["weights"], options["body"])


def check_body(body: Any) -> None:
    if body is not None and body not in BODIES:
        hint = did_you_mean(str(body), BODIES)
        raise ValueError(f"body: expected 'trained', 'frozen' or None, got {body!r}{hint}")


def check_model(model: Any, weights: Any, body: str | None) -> None:
    """The network of pictures, its weights, and whether it is trained."""
    if model is not None and not isinstance(model, str):
        raise ValueError(f"model: expected a name that fullmatch list models shows, got {model!r}")
    if weights is not None and model in (None, PRETRAINED):
        raise ValueError("weights: got a file without the model that it belongs to")
    if model == PRETRAINED and body == "trained":
        raise ValueError(
            "body: model='pretrained' is used as it is; leave body out, or name a network to train"
        )
    if model != PRETRAINED and difflib.get_close_matches(str(model), [PRETRAINED], cutoff=0.8):
        raise ValueError(f"model: unknown model {model!r}; did you mean {PRETRAINED!r}?")


def check_feature_options(body: str | None, **options: Any) -> None:
    """Rows of features have no network; whoever sets one has forgotten that they are pictures."""
    pictures = "for rows of pixels, give image_shape, such as (8, 8)"
    for name in PICTURE_OPTIONS:
        if options[name] is not None:
            raise ValueError(f"{name}: got {options[name]!r} for rows of features; {pictures}")
    if body == "trained":
        raise ValueError(f"body: rows of features have no body to train; {pictures}")


def uses_frozen_body(kind: InputKind, model: str | None, body: str | None) -> bool:
    """Whether only a head is trained, on features."""
    pretrained = model == PRETRAINED and body is None
    return kind is InputKind.FEATURES or body == "frozen" or pretrained
