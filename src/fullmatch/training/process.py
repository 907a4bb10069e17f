"""Settings that training changes for its whole process, and how they are restored."""

import contextlib
import threading
from collections.abc import Iterator

import torch

TRAINING = threading.Lock()  # a process has one random generator, which every step seeds


def apply_process_settings(
    device: torch.device, *, threads: int | None, deterministic: bool
) -> None:
    if threads:
        torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = not deterministic
        torch.use_deterministic_algorithms(deterministic)
        torch.set_float32_matmul_precision("high")


@contextlib.contextmanager
def restoring_process_settings() -> Iterator[None]:
    """One training at a time, with gradients enabled; restores torch's settings at the end."""
    with TRAINING, torch.inference_mode(False), torch.enable_grad():
        threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        benchmark = torch.backends.cudnn.benchmark
        deterministic = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
            torch.backends.cudnn.benchmark = benchmark
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
