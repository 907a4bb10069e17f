"""What training sets for all of its process, and how it behaves in one that is somebody else's."""

import contextlib
import threading
from collections.abc import Iterator

import torch

TRAINING = threading.Lock()  # a process has one generator, which is pointed at every step


def set_process(device: torch.device, *, threads: int | None, deterministic: bool) -> None:
    if threads:
        torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = not deterministic
        torch.use_deterministic_algorithms(deterministic)
        torch.set_float32_matmul_precision("high")


@contextlib.contextmanager
def as_a_guest() -> Iterator[None]:
    """One training at a time, whatever modes its caller is in, and all as it was thereafter."""
    with TRAINING, torch.inference_mode(False), torch.enable_grad():
        threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        tuned = torch.backends.cudnn.benchmark
        strict = torch.are_deterministic_algorithms_enabled()
        lenient = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
            torch.backends.cudnn.benchmark = tuned
            torch.use_deterministic_algorithms(strict, warn_only=lenient)
