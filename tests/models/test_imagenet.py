"""Class names are found among those of ImageNet, in any usual spelling."""

import pytest
import torch

from fullmatch.models.imagenet import imagenet_names, match_imagenet


@pytest.mark.parametrize(
    ("name", "indices"),
    [
        ("ants", [310]),
        ("Bee", [309]),
        ("great_white-shark", [2]),
        ("daisy", [985]),
        ("daisies", [985]),
        ("cats", [281, 282, 283, 284, 285]),  # tabby cat, tiger cat, ...
    ],
)
def test_names_of_imagenet(name: str, indices: list[int]) -> None:
    matches = match_imagenet((name,))
    assert matches is not None
    assert matches.shape == (1000, 1)
    assert set(indices) <= set(matches[:, 0].nonzero().flatten().tolist())


def test_every_class_has_a_column_of_its_own() -> None:
    matches = match_imagenet(("bee", "ant"))
    assert matches is not None
    assert matches[309].tolist() == [1, 0]
    assert matches[310].tolist() == [0, 1]


@pytest.mark.parametrize(
    "classes",
    [
        ("ant", "something else"),  # not all are known
        ("cat", "tabby"),  # one is the other
        ("0", "1"),
        ("s", "es"),
    ],
)
def test_names_that_do_not_help(classes: tuple[str, ...]) -> None:
    assert match_imagenet(classes) is None


def test_every_imagenet_class_has_a_name() -> None:
    assert len(imagenet_names()) == 1000
    assert all(imagenet_names())
    assert torch.is_tensor(match_imagenet(("goldfish",)))
