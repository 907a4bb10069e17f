"""Random numbers as a function of seed and step; the caller keeps its own."""

import itertools

import torch

from fullmatch.training.randomness import preserve_rng, seed_step

CPU = torch.device("cpu")


def numbers(seed: int, step: int, rank: int = 0) -> tuple[float, ...]:
    seed_step(seed, step, rank, CPU)
    return tuple(torch.rand(4).tolist())


def test_numbers_depend_only_on_seed_step_and_rank() -> None:
    with preserve_rng(CPU):
        drawn = {
            key: numbers(*key) for key in itertools.product(range(4), (0, 1, 2, 2**20), range(3))
        }
        assert len(set(drawn.values())) == len(drawn)
        assert all(numbers(*key) == value for key, value in reversed(drawn.items()))
        assert numbers(2**63 - 1, 2**40, 1000)  # large keys wrap around


def test_random_state_of_the_caller_is_restored() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with preserve_rng(CPU):
        numbers(0, 0)
    assert torch.equal(torch.rand(3), expected)
