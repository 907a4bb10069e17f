"""Leaks, disputes, uneven classes and mirror images are dealt with, and said."""

from dataclasses import replace

import pytest
import torch

from fullmatch.core import Appearance
from fullmatch.data import SemiDataset, Source, TensorStore
from fullmatch.data.quality.cleaning import (
    balanced,
    may_flip,
    mirrored,
    prepared,
    without_disputes,
    without_test_copies,
)
from fullmatch.errors import UserError


def dataset(labels: list[int], classes: tuple[str, ...] = ("cat", "dog")) -> SemiDataset:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (len(labels), 1, 8, 8), dtype=torch.uint8, generator=generator)
    source = Source(
        name="own",
        images=TensorStore(images),
        labels=torch.tensor(labels),
        classes=classes,
        appearance=Appearance((0.5,), (0.25,)),
    )
    return SemiDataset.of(source)


def test_test_copies_leave_both_halves() -> None:
    own = dataset([0, 0, 1, 1, -1, -1])
    copied = TensorStore(own.images.read(torch.tensor([1, 4])))
    found = without_test_copies(replace(own, test=copied, test_labels=torch.tensor([0, 1])))
    assert found.labeled.tolist() == [0, 2, 3] and found.unlabeled.tolist() == [0, 2, 3, 5]
    assert "2 training pictures are also in the test" in found.notes[-1]
    assert without_test_copies(own) is own


def test_disputed_labels_are_not_used_but_the_pictures_are() -> None:
    own = dataset([0, 0, 1, 1, -1])
    pixels = own.images.read(torch.arange(5))
    pixels[3] = pixels[0]
    found = without_disputes(replace(own, images=TensorStore(pixels)))
    assert found.labeled.tolist() == [1, 2] and len(found.unlabeled) == 5
    pixels[2] = pixels[1]
    with pytest.raises(UserError, match="none is left of the class 'cat'"):
        without_disputes(replace(own, images=TensorStore(pixels)))


def test_small_classes_are_repeated() -> None:
    own = dataset([0] * 12 + [1] * 3 + [-1])
    found = balanced(own)
    assert torch.bincount(found.labels[found.labeled]).tolist() == [12, 12]
    assert found.class_prior == (0.5, 0.5) and "dog" in found.notes[-1]
    assert balanced(dataset([0, 0, 1])).notes == ()
    rare = balanced(dataset([0] * 100 + [1]))
    assert torch.bincount(rare.labels[rare.labeled]).tolist() == [100, 10]


@pytest.mark.parametrize(
    "classes,flips",
    [
        (("0", "1", "10"), False),
        (("a", "B", "ß"), False),
        (("left", "Right", "straight"), False),
        (("cat", "b"), True),
        (("left", "top"), True),
    ],
)
def test_mirrors_by_class_names(classes: tuple[str, ...], flips: bool) -> None:
    assert may_flip(classes) is flips


def test_the_user_decides_on_mirrors() -> None:
    own = dataset([0, 1], ("0", "1"))
    assert not mirrored(own).appearance.flip
    assert mirrored(own, flip=True).appearance.flip
    assert not mirrored(dataset([0, 1]), flip=False).appearance.flip


def test_benchmarks_are_left_alone() -> None:
    own = replace(dataset([0] * 9 + [1], ("0", "1")), benchmark=True)
    assert prepared(own) is own and own.appearance.flip
    assert not prepared(own, flip=False).appearance.flip  # unless a setting says so
    assert len(prepared(replace(own, benchmark=False)).labeled) == 18


def test_pictures_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own = dataset([0, 0, 1, 1, -1])
    read: list[int] = []
    usual = TensorStore.read

    def counted(store: TensorStore, index: torch.Tensor) -> torch.Tensor:
        read.append(len(index))
        return usual(store, index)

    monkeypatch.setattr(TensorStore, "read", counted)
    test = TensorStore(torch.zeros(2, 1, 8, 8, dtype=torch.uint8))
    prepared(replace(own, test=test, test_labels=torch.tensor([0, 1])))
    assert sorted(read) == [2, 5]
