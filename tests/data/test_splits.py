"""Splits are balanced, repeatable in every version, and recognize their data set."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fullmatch.data.splits import Split, count_long_tail, draw_split, draw_unlabeled
from fullmatch.errors import UserError


def ten_each(num_classes: int = 4) -> Tensor:
    return torch.arange(10 * num_classes) % num_classes


@given(st.integers(4, 40), st.integers(0, 1000))
def test_every_class_gets_its_share(count: int, seed: int) -> None:
    labels = ten_each()
    split = draw_split(labels, count, seed, 4, "toy")
    assert len(set(split.labeled)) == count
    counts = torch.bincount(labels[list(split.labeled)], minlength=4)
    assert counts.max() - counts.min() == (1 if count % 4 else 0)
    assert split.targets == tuple(labels[list(split.labeled)].tolist())


def test_same_seed_same_split_in_every_version() -> None:
    assert draw_split(ten_each(), 6, 0, 4, "toy").labeled == (7, 9, 11, 14, 16, 30)
    assert (
        draw_split(ten_each(), 6, 1, 4, "toy").labeled
        != draw_split(ten_each(), 6, 0, 4, "toy").labeled
    )


def test_larger_draw_contains_the_smaller() -> None:
    small, large = (set(draw_split(ten_each(), n, 5, 4, "toy").labeled) for n in (4, 20))
    assert small < large


def test_remainder_goes_to_classes_chosen_by_the_seed() -> None:
    drawn = [draw_split(ten_each(), 5, seed, 4, "toy").targets for seed in range(40)]
    favored = {tuple(sorted(targets)) for targets in drawn}
    assert len(favored) == 4


def test_draws_are_uniform() -> None:
    hits = torch.zeros(20)
    for seed in range(2000):
        hits[list(draw_split(torch.arange(20) % 2, 4, seed, 2, "toy").labeled)] += 1
    # Each of 20 images is drawn with probability 1/5: 400 of 2000, standard deviation 18.
    assert (hits - 400).abs().max() < 75


def test_unknown_labels_are_never_drawn() -> None:
    labels = torch.tensor([0, -1, 1, -1, 0, 1])
    assert set(draw_split(labels, 4, 0, 2, "toy").labeled) == {0, 2, 4, 5}


@pytest.mark.parametrize(
    ("count", "seed", "message"),
    [(3, 0, "fewer than the 4 classes"), (41, 0, "ask for fewer"), (4, -1, "negative")],
)
def test_impossible_draws(count: int, seed: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        draw_split(ten_each(), count, seed, 4, "toy")


def test_error_names_the_class_with_too_few_labels() -> None:
    labels = torch.tensor([0, 0, 0, 1])
    with pytest.raises(UserError, match="class 'dog' of toy has 1 labeled images, 2 are needed"):
        draw_split(labels, 4, 0, 2, "toy", classes=("cat", "dog"))


def test_file_round_trip(tmp_path: Path) -> None:
    split = draw_split(ten_each(), 8, 3, 4, "toy")
    split.save(tmp_path / "split.json")
    loaded = Split.load(tmp_path / "split.json")
    assert loaded == split
    assert loaded.hash == split.hash
    assert len(split.hash) == 64


def test_a_split_without_unknown_classes_is_saved_as_before(tmp_path: Path) -> None:
    split = draw_split(ten_each(), 8, 3, 4, "toy")
    split.save(tmp_path / "split.json")
    assert "unknown_classes" not in json.loads((tmp_path / "split.json").read_text())
    hidden = replace(split, unknown_classes=("cat", "dog"))
    assert hidden.hash != split.hash
    hidden.save(tmp_path / "hidden.json")
    assert Split.load(tmp_path / "hidden.json") == hidden


def test_changed_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    draw_split(ten_each(), 8, 3, 4, "toy").save(path)
    content = json.loads(path.read_text())
    content["labeled"][0] += 4
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="changed after"):
        Split.load(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"dataset": "toy"}'])
def test_other_file_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(UserError, match="not a split file"):
        Split.load(path)
    with pytest.raises(UserError, match="cannot read the split"):
        Split.load(tmp_path / "absent.json")


def test_split_recognizes_its_data() -> None:
    split = draw_split(ten_each(), 8, 3, 4, "toy")
    split.check("toy", ten_each())
    for name, labels in [
        ("other", ten_each()),
        ("toy", ten_each()[:-1]),
        ("toy", ten_each().flip(0)),
    ]:
        with pytest.raises(UserError, match="does not match"):
            split.check(name, labels)


def counts_of(labels: Tensor, positions: tuple[int, ...] | None) -> list[int]:
    assert positions is not None
    counts: list[int] = torch.bincount(labels[list(positions)], minlength=4).tolist()
    return counts


def test_long_tailed_labels() -> None:
    labels = ten_each()
    split = draw_split(labels, 15, 0, 4, "toy", imbalance=8)
    assert counts_of(labels, split.labeled) == [8, 4, 2, 1]
    assert split.imbalance == 8
    assert set(draw_split(labels, 18, 0, 4, "toy", imbalance=8).labeled) > set(split.labeled)
    assert draw_split(labels, 15, 1, 4, "toy", imbalance=8).labeled != split.labeled
    assert count_long_tail(labels, 4, 8) == 18
    assert draw_split(labels, 6, 0, 4, "toy", imbalance=1) == draw_split(labels, 6, 0, 4, "toy")


def test_long_tail_without_a_label_for_every_class() -> None:
    with pytest.raises(UserError, match=r"imbalance of 8 leave none .* at least 15 labels"):
        draw_split(ten_each(), 8, 0, 4, "toy", imbalance=8)
    draw_split(ten_each(), 15, 0, 4, "toy", imbalance=8)
    with pytest.raises(UserError, match="class 0 of toy has 10 labeled images, 16 are needed"):
        draw_split(ten_each(), 30, 0, 4, "toy", imbalance=8)


@pytest.mark.parametrize(
    ("count", "imbalance", "expected"),
    [
        (None, 8, [2, 1, 0, 0]),
        (None, 1, [2, 2, 2, 2]),
        (None, -8, [1, 2, 4, 9]),
        (6, 1, [2, 2, 1, 1]),
        (10, -4, [1, 1, 3, 5]),
    ],
)
def test_long_tailed_unlabeled_images(
    count: int | None, imbalance: float, expected: list[int]
) -> None:
    labels = ten_each()
    labeled = draw_split(labels, 15, 3, 4, "toy", imbalance=8)
    split = draw_unlabeled(labeled, labels, 4, count, imbalance)
    assert counts_of(labels, split.unlabeled) == expected
    assert split.labeled == labeled.labeled
    assert split.unlabeled is not None
    assert not set(split.unlabeled) & set(split.labeled)
    assert split == draw_unlabeled(labeled, labels, 4, count, imbalance)


def test_some_unlabeled_images_of_any_class() -> None:
    labels = torch.where(torch.arange(40) < 20, ten_each(), -1)
    labeled = draw_split(labels, 8, 3, 4, "toy")
    five, ten = (draw_unlabeled(labeled, labels, 4, n, None).unlabeled for n in (5, 10))
    assert five is not None
    assert ten is not None
    assert len(five) == 5
    assert set(five) < set(ten)
    assert not set(ten) & set(labeled.labeled)
    assert any(labels[at] < 0 for at in ten)


def test_impossible_unlabeled_images() -> None:
    labels = ten_each()
    labeled = draw_split(labels, 8, 3, 4, "toy")
    with pytest.raises(UserError, match=r"toy has 32 unlabeled ones, .* = 33; ask for"):
        draw_unlabeled(labeled, labels, 4, 33, None)
    with pytest.raises(UserError, match=r"with an imbalance of -2, fewer than .* = 32"):
        draw_unlabeled(labeled, labels, 4, 32, -2)
    everything = draw_split(labels, 40, 3, 4, "toy")
    with pytest.raises(UserError, match="has 0 unlabeled ones"):
        draw_unlabeled(everything, labels, 4, None, 2)
    with pytest.raises(UserError, match="needs the class of every image"):
        draw_unlabeled(labeled, labels.clamp(max=2) - (labels == 3).long() * 3, 4, None, 2)


def test_long_tailed_file_round_trip(tmp_path: Path) -> None:
    labels = ten_each()
    plain = draw_split(labels, 15, 3, 4, "toy")
    split = draw_unlabeled(draw_split(labels, 15, 3, 4, "toy", imbalance=8), labels, 4, None, -8)
    split.save(tmp_path / "split.json")
    assert Split.load(tmp_path / "split.json") == split
    plain.save(tmp_path / "plain.json")
    saved = json.loads((tmp_path / "plain.json").read_text())
    assert not {"imbalance", "unlabeled", "unlabeled_imbalance"} & saved.keys()
    assert split.hash != plain.hash
