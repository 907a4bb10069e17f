"""The order of images is a function of seed and step, uniform, and has no image twice per batch."""

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fullmatch.data.sampler import BLOCK, Sampler, permutations

CPU = torch.device("cpu")


def make_sampler(
    size: int, batch: int, *, seed: int = 0, stream: int = 0, **options: Any
) -> Sampler:
    return Sampler(size, batch, seed=seed, stream=stream, device=CPU, **options)


def positions(sampler: Sampler, step: int) -> list[int]:
    sampler.seek(step)
    result: list[int] = sampler.positions().tolist()
    return result


@given(
    size=st.integers(1, 60),
    batch=st.integers(1, 80),
    seed=st.integers(0, 2**62),
    steps=st.lists(st.integers(0, 5000), min_size=1, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_step_can_be_sought_from_any_other(
    size: int, batch: int, seed: int, steps: list[int]
) -> None:
    used = make_sampler(size, batch, seed=seed)
    for step in steps:
        drawn = positions(used, step)
        assert drawn == positions(make_sampler(size, batch, seed=seed), step)
        assert len(set(drawn)) == len(drawn) == min(size, batch)
        assert set(drawn) <= set(range(size))


def test_walking_equals_jumping() -> None:
    walking, jumping = make_sampler(50, 8, seed=3), make_sampler(50, 8, seed=3)
    order = [positions(walking, step) for step in range(2 * BLOCK + 20)]
    for step in torch.randperm(len(order), generator=torch.Generator().manual_seed(0)).tolist():
        assert positions(jumping, step) == order[step]


@pytest.mark.parametrize(("size", "batch"), [(48, 8), (50, 8), (7, 7), (3, 9), (1000, 1)])
def test_batches_of_an_epoch_do_not_overlap(size: int, batch: int) -> None:
    """An epoch has all images except the last partial batch, which differs between epochs."""
    sampler = make_sampler(size, batch)
    length = size // min(size, batch)
    drawn: set[int] = set()
    for epoch in range(6):
        one_epoch = [i for s in range(length) for i in positions(sampler, epoch * length + s)]
        assert len(set(one_epoch)) == len(one_epoch) == length * min(size, batch)
        drawn |= set(one_epoch)
    assert drawn == set(range(size))


def test_seeds_streams_and_epochs_differ() -> None:
    """Including those that would coincide if the hash were too simple."""
    orders = {}
    for seed, stream, epoch in itertools.product(range(5), range(2), (0, 1, 2, 65537, 131074)):
        order = permutations(100, range(epoch, epoch + 1), seed, stream, CPU)[0]
        orders[seed, stream, epoch] = tuple(order.tolist())
    assert len(set(orders.values())) == len(orders)


def test_orders_are_uniform() -> None:
    """Every image comes first about equally often: chi-square with 19 degrees of freedom."""
    first = permutations(20, range(4000), 0, 0, CPU)[:, 0]
    counts = torch.bincount(first, minlength=20).double()
    assert ((counts - 200).square() / 200).sum() < 43.8  # exceeded once in a thousand


def test_pairs_of_neighbors_are_uniform() -> None:
    order = permutations(10, range(9000), 1, 1, CPU)
    pairs = torch.bincount(order[:, 0] * 10 + order[:, 1], minlength=100).double()
    off_diagonal = pairs[~torch.eye(10, dtype=torch.bool).flatten()]
    assert ((off_diagonal - 100).square() / 100).sum() < 135.0  # 89 degrees, once in a thousand


def test_processes_share_a_batch() -> None:
    whole = positions(make_sampler(40, 8, seed=2), 7)
    for count in (2, 4, 8):
        parts = [
            positions(make_sampler(40, 8, seed=2, rank=rank, world_size=count), 7)
            for rank in range(count)
        ]
        assert [i for row in zip(*parts, strict=True) for i in row] == whole


def test_the_order_is_written_in_place() -> None:
    """A recorded step reads the same memory at every replay."""
    sampler = make_sampler(10, 5)
    pointers = sampler.order.data_ptr(), sampler.cursor.data_ptr()
    for step in (0, 1, BLOCK, 10 * BLOCK):
        sampler.seek(step)
        assert (sampler.order.data_ptr(), sampler.cursor.data_ptr()) == pointers


@given(size=st.integers(1, 60), batch=st.integers(1, 80), step=st.integers(0, 3000))
@settings(max_examples=60, deadline=None)
def test_repeating_fills_every_batch_evenly(size: int, batch: int, step: int) -> None:
    drawn = positions(make_sampler(size, batch, seed=5, repeat=True), step)
    assert len(drawn) == batch
    times = Counter(drawn)
    # A batch is a piece of joined epochs, so two images differ by two at most.
    assert max(times.values()) - min(times[image] for image in range(size)) <= 2
    if size >= batch:
        assert drawn == positions(make_sampler(size, batch, seed=5), step)


def test_64_of_40_labels_as_in_the_paper() -> None:
    sampler = make_sampler(40, 64, repeat=True)
    batches = [positions(sampler, step) for step in range(2 * BLOCK)]
    assert all(len(batch) == 64 for batch in batches)
    # Five batches are eight epochs: every image comes eight times, in every stretch of the run.
    for start in range(0, len(batches) - 5, 5):
        stretch = Counter(itertools.chain(*batches[start : start + 5]))
        assert set(stretch.values()) == {8}
    assert len(set(map(tuple, batches))) == len(batches)


def test_processes_share_a_repeated_batch() -> None:
    whole = positions(make_sampler(5, 8, repeat=True), 7)
    parts = [positions(make_sampler(5, 8, repeat=True, rank=r, world_size=4), 7) for r in range(4)]
    assert [i for row in zip(*parts, strict=True) for i in row] == whole
