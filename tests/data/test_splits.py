"""Splits are balanced, repeatable in every version, and recognize their data set."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fullmatch.data.splits import Split, draw_split
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
