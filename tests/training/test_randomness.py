"""Random numbers by seed and step, borrowed from the caller and handed back."""

import itertools

import torch

from fullmatch.training.randomness import borrowed, seed_step

CPU = torch.device("cpu")


def numbers(seed: int, step: int, rank: int = 0) -> tuple[float, ...]:
    seed_step(seed, step, rank, CPU)
    return tuple(torch.rand(4).tolist())


def test_seed_step_and_rank_decide_alone() -> None:
    with borrowed(CPU):
        found = {
            key: numbers(*key) for key in itertools.product(range(4), (0, 1, 2, 2**20), range(3))
        }
        assert len(set(found.values())) == len(found)
        assert all(numbers(*key) == value for key, value in reversed(found.items()))
        assert numbers(2**63 - 1, 2**40, 1000)  # large ones wrap around


def test_caller_gets_its_generator_back() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with borrowed(CPU):
        numbers(0, 0)
    assert torch.equal(torch.rand(3), expected)
