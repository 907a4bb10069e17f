"""Parameters that do not exist or do not go together are errors that say what to do."""

from typing import Any

import pytest

from fullmatch.estimator import FullMatchClassifier
from fullmatch.estimator.inputs import InputKind
from fullmatch.estimator.options import check_options, uses_frozen_body

PICTURES, FEATURES = InputKind.PICTURES, InputKind.FEATURES


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (PICTURES, {"body": "Frozen"}, "body: expected 'trained', 'frozen' or None, got 'Frozen'"),
        (PICTURES, {"body": "traind"}, "got 'traind'; did you mean 'trained'"),
        (PICTURES, {"body": 3}, "'frozen' or None, got 3"),
        (PICTURES, {"model": 3}, "model: expected a name that .* shows, got 3"),
        (PICTURES, {"model": "pre-trained"}, "did you mean 'pretrained'"),
        (PICTURES, {"model": "pretrained", "body": "trained"}, "body: .* name a network to train"),
        (PICTURES, {"weights": "a.pth"}, "weights: got a file without the model"),
        (PICTURES, {"model": "pretrained", "weights": "a.pth"}, "a file without the model"),
        (FEATURES, {"model": "pretrained"}, "model: got 'pretrained' for rows of features"),
        (FEATURES, {"weights": "a.pth"}, "weights: got 'a.pth' for rows of features"),
        (FEATURES, {"pixel_range": (0, 16)}, r"pixel_range: got \(0, 16\) .* give image_shape"),
        (FEATURES, {"image_size": 8}, "image_size: got 8 for rows of features"),
        (FEATURES, {"body": "trained"}, "no body to train; for rows of pixels, give image_shape"),
    ],
)
def test_wrong_options(kind: InputKind, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_options(kind, **FullMatchClassifier(**options).get_params())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PICTURES, {}),
        (PICTURES, {"model": "resnet18", "body": "frozen", "weights": "a.pth"}),
        (PICTURES, {"model": "pretrained", "body": "frozen"}),
        (PICTURES, {"body": "frozen"}),
        (FEATURES, {"body": "frozen"}),
        (FEATURES, {"flip": False}),
    ],
)
def test_options_that_go_together(kind: InputKind, options: dict[str, Any]) -> None:
    check_options(kind, **FullMatchClassifier(**options).get_params())


@pytest.mark.parametrize(
    ("kind", "model", "body", "frozen"),
    [
        (FEATURES, None, None, True),
        (PICTURES, None, None, False),
        (PICTURES, "resnet18", None, False),
        (PICTURES, "pretrained", None, True),
        (PICTURES, None, "frozen", True),
        (PICTURES, "resnet18", "frozen", True),
        (PICTURES, "resnet18", "trained", False),
    ],
)
def test_when_the_body_is_frozen(
    kind: InputKind, model: str | None, body: str | None, frozen: bool
) -> None:
    assert uses_frozen_body(kind, model, body) is frozen
