"""What holds for all tests: one thread, no GPU tests without a GPU, nothing written by accident."""

import os
import signal
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for processes that tests start
os.environ.pop("FULLMATCH_DATA", None)
os.environ["COLUMNS"] = "120"  # tables are not broken by a narrow terminal

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels are run by Python; to be said before any import


def pytest_configure() -> None:
    torch.set_num_threads(1)
    # A suite started in the background ignores interrupts, and so would processes it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    away = [item for item in items if item.get_closest_marker("gpu")]
    if away:
        config.hook.pytest_deselected(items=away)
        items[:] = [item for item in items if item not in away]


@pytest.fixture(scope="session", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A relative path, such as runs/, lands in a temporary folder and not in the checkout."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A resumed run restores its thread count; the next test starts from one again."""
    yield
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
