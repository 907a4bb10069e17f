"""The order of images: a function of seed and step, fair, and never an image twice in a batch."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fullmatch.data.sampler import BLOCK, Sampler, permutations

CPU = torch.device("cpu")


def sampler(size: int, batch: int, *, seed: int = 0, stream: int = 0, **rest: int) -> Sampler:
    return Sampler(size, batch, seed=seed, stream=stream, device=CPU, **rest)


def positions(one: Sampler, step: int) -> list[int]:
    one.seek(step)
    found: list[int] = one.positions().tolist()
    return found


@given(
    size=st.integers(1, 60),
    batch=st.integers(1, 80),
    seed=st.integers(0, 2**62),
    steps=st.lists(st.integers(0, 5000), min_size=1, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_a_step_can_be_sought_from_anywhere(
    size: int, batch: int, seed: int, steps: list[int]
) -> None:
    used = sampler(size, batch, seed=seed)
    for step in steps:
        found = positions(used, step)
        assert found == positions(sampler(size, batch, seed=seed), step)
        assert len(set(found)) == len(found) == min(size, batch)
        assert set(found) <= set(range(size))


def test_walking_equals_jumping() -> None:
    walking, jumping = sampler(50, 8, seed=3), sampler(50, 8, seed=3)
    order = [positions(walking, step) for step in range(2 * BLOCK + 20)]
    for step in torch.randperm(len(order), generator=torch.Generator().manual_seed(0)).tolist():
        assert positions(jumping, step) == order[step]


@pytest.mark.parametrize(("size", "batch"), [(48, 8), (50, 8), (7, 7), (3, 9), (1000, 1)])
def test_batches_of_an_epoch_do_not_overlap(size: int, batch: int) -> None:
    """All images but the few that fill no whole batch, and those are others in every epoch."""
    one = sampler(size, batch)
    length = size // min(size, batch)
    seen: set[int] = set()
    for epoch in range(6):
        found = [i for s in range(length) for i in positions(one, epoch * length + s)]
        assert len(set(found)) == len(found) == length * min(size, batch)
        seen |= set(found)
    assert seen == set(range(size))


def test_seeds_streams_and_epochs_differ() -> None:
    """Also those that a careless mixing would shift onto each other."""
    orders = {}
    for seed, stream, epoch in itertools.product(range(5), range(2), (0, 1, 2, 65537, 131074)):
        order = permutations(100, range(epoch, epoch + 1), seed, stream, CPU)[0]
        orders[seed, stream, epoch] = tuple(order.tolist())
    assert len(set(orders.values())) == len(orders)


def test_orders_are_fair() -> None:
    """Every image comes first about equally often: chi-square with 19 degrees of freedom."""
    first = permutations(20, range(4000), 0, 0, CPU)[:, 0]
    counts = torch.bincount(first, minlength=20).double()
    assert ((counts - 200).square() / 200).sum() < 43.8  # exceeded once in a thousand


def test_pairs_of_neighbours_are_fair() -> None:
    order = permutations(10, range(9000), 1, 1, CPU)
    pairs = torch.bincount(order[:, 0] * 10 + order[:, 1], minlength=100).double()
    off_diagonal = pairs[~torch.eye(10, dtype=torch.bool).flatten()]
    assert ((off_diagonal - 100).square() / 100).sum() < 135.0  # 89 degrees, once in a thousand


def test_processes_share_a_batch() -> None:
    whole = positions(sampler(40, 8, seed=2), 7)
    parts = [positions(sampler(40, 8, seed=2, rank=r, world_size=4), 7) for r in range(4)]
    assert [i for part in parts for i in part] == whole


def test_the_order_is_written_in_place() -> None:
    """A recorded step reads the same memory at every replay."""
    one = sampler(10, 5)
    places = one.order.data_ptr(), one.cursor.data_ptr()
    for step in (0, 1, BLOCK, 10 * BLOCK):
        one.seek(step)
        assert (one.order.data_ptr(), one.cursor.data_ptr()) == places


def test_a_small_set_is_shared_evenly() -> None:
    shares = [
        Sampler(9, 16, seed=0, stream=0, device=CPU, rank=rank, world_size=2) for rank in range(2)
    ]
    for sampler in shares:
        sampler.seek(3)
    first, second = (sampler.positions().tolist() for sampler in shares)
    assert len(first) == len(second) == 4
    assert not set(first) & set(second)
