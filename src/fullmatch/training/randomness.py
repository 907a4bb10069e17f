"""The random numbers of a step as a function of seed and step, so there is no state to save."""

import contextlib
from collections.abc import Iterator

import torch


def seed_step(seed: int, step: int, rank: int, device: torch.device) -> None:
    """Seed the device's default generator for this step."""
    # The constants are odd and large, so that similar seeds, steps and ranks give distant keys.
    key = (
        seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + rank * 0x8CB92BA72F3D8DD7
    ) % 2**63
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(key)
    else:
        torch.default_generator.manual_seed(key)


@contextlib.contextmanager
def preserve_rng(device: torch.device) -> Iterator[None]:
    """Restore the caller's random state at the end."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield
