"""Random numbers of a step as a function of seed and step, so that there is no state to save."""

import contextlib
from collections.abc import Iterator

import torch


def seed_step(seed: int, step: int, rank: int, device: torch.device) -> None:
    """Point the device's default generator at this step's random numbers."""
    # The constants are odd and large, so that near seeds, steps and ranks land far apart.
    key = (
        seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + rank * 0x8CB92BA72F3D8DD7
    ) % 2**63
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(key)
    else:
        torch.default_generator.manual_seed(key)


@contextlib.contextmanager
def borrowed(device: torch.device) -> Iterator[None]:
    """Hand the caller's generator back as it was."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield
