"""Test leaks, conflicting labels, imbalanced classes and flipping are handled and noted."""

from dataclasses import replace

import pytest
import torch

from fullmatch.core import Appearance
from fullmatch.data import SemiDataset, Source, TensorStore
from fullmatch.data.quality.cleaning import (
    balance_classes,
    can_flip,
    clean_dataset,
    decide_flip,
    drop_conflicting_labels,
    drop_test_duplicates,
)
from fullmatch.errors import UserError


def make_dataset(labels: list[int], classes: tuple[str, ...] = ("cat", "dog")) -> SemiDataset:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (len(labels), 1, 8, 8), dtype=torch.uint8, generator=generator)
    source = Source(
        name="own",
        images=TensorStore(images),
        labels=torch.tensor(labels),
        classes=classes,
        appearance=Appearance((0.5,), (0.25,)),
    )
    return SemiDataset.from_source(source)


def test_test_duplicates_leave_labeled_and_unlabeled_pictures() -> None:
    dataset = make_dataset([0, 0, 1, 1, -1, -1])
    test = TensorStore(dataset.images.read(torch.tensor([1, 4])))
    cleaned = drop_test_duplicates(replace(dataset, test=test, test_labels=torch.tensor([0, 1])))
    assert cleaned.labeled.tolist() == [0, 2, 3]
    assert cleaned.unlabeled.tolist() == [0, 2, 3, 5]
    assert cleaned.notes[-1].startswith("2 training pictures are also in the test set")
    assert drop_test_duplicates(dataset) is dataset


def test_one_test_duplicate_is_noted_in_the_singular() -> None:
    dataset = make_dataset([0, 0, 1, 1])
    test = TensorStore(dataset.images.read(torch.tensor([1])))
    cleaned = drop_test_duplicates(replace(dataset, test=test, test_labels=torch.tensor([0])))
    assert cleaned.notes == ("1 training picture is also in the test set: left out of training",)


def test_conflicting_labels_are_not_used_but_the_pictures_are() -> None:
    dataset = make_dataset([0, 0, 1, 1, -1])
    pixels = dataset.images.read(torch.arange(5))
    pixels[3] = pixels[0]
    cleaned = drop_conflicting_labels(replace(dataset, images=TensorStore(pixels)))
    assert cleaned.labeled.tolist() == [1, 2]
    assert len(cleaned.unlabeled) == 5
    pixels[2] = pixels[1]
    with pytest.raises(UserError, match="leaves no label of the class 'cat'"):
        drop_conflicting_labels(replace(dataset, images=TensorStore(pixels)))


def test_small_classes_are_repeated() -> None:
    balanced = balance_classes(make_dataset([0] * 12 + [1] * 3 + [-1]))
    assert torch.bincount(balanced.labels[balanced.labeled]).tolist() == [12, 12]
    assert balanced.batch_prior == (0.5, 0.5)
    assert balanced.class_prior == (0.8, 0.2)  # each picture counts once
    assert "dog" in balanced.balance_note
    assert balanced.notes == (balanced.balance_note,)
    unchanged = balance_classes(make_dataset([0, 0, 1]))
    assert unchanged.notes == ()
    assert unchanged.balance_note == ""
    rare = balance_classes(make_dataset([0] * 100 + [1]))
    assert torch.bincount(rare.labels[rare.labeled]).tolist() == [100, 10]


@pytest.mark.parametrize(
    ("classes", "flips"),
    [
        (("0", "1", "10"), False),
        (("a", "B", "ß"), False),
        (("left", "Right", "straight"), False),
        (("cat", "b"), True),
        (("left", "top"), True),
    ],
)
def test_flipping_by_class_names(classes: tuple[str, ...], flips: bool) -> None:
    assert can_flip(classes) is flips


def test_the_user_can_decide_on_flipping() -> None:
    digits = make_dataset([0, 1], ("0", "1"))
    assert not decide_flip(digits).appearance.flip
    assert decide_flip(digits, flip=True).appearance.flip
    assert not decide_flip(make_dataset([0, 1]), flip=False).appearance.flip


def test_benchmarks_are_not_changed() -> None:
    dataset = replace(make_dataset([0] * 9 + [1], ("0", "1")), benchmark=True)
    assert clean_dataset(dataset) is dataset
    assert dataset.appearance.flip
    assert not clean_dataset(dataset, flip=False).appearance.flip  # unless a setting says so
    assert len(clean_dataset(replace(dataset, benchmark=False)).labeled) == 18


class CountingStore(TensorStore):
    """Counts how many images are read."""

    images_read = 0

    def read(self, index: torch.Tensor) -> torch.Tensor:
        self.images_read += len(index)
        return super().read(index)


def test_pictures_are_hashed_once() -> None:
    dataset = make_dataset([0, 0, 1, 1, -1])
    images = CountingStore(dataset.images.read(torch.arange(5)))
    test = CountingStore(torch.zeros(2, 1, 8, 8, dtype=torch.uint8))
    clean_dataset(replace(dataset, images=images, test=test, test_labels=torch.tensor([0, 1])))
    assert (images.images_read, test.images_read) == (5, 2)


def test_repeated_pictures_leave_the_class_prior_alone() -> None:
    balanced = balance_classes(make_dataset([0] * 100 + [1] * 10))
    assert balanced.batch_prior == (0.5, 0.5)
    assert balanced.class_prior == (100 / 110, 10 / 110)
