"""The machine that a run is on: its device, and the versions of what is installed."""

import platform

import torch

import fullmatch
from fullmatch.errors import pluralize


def choose_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({pluralize(torch.get_num_threads(), 'thread')})"


def versions() -> dict[str, str]:
    return {
        "fullmatch": fullmatch.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
