"""For all tests: one thread, no GPU tests without a GPU, nothing written by accident."""

import os
import signal
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for processes that tests start
os.environ.pop("FULLMATCH_DATA", None)
os.environ["COLUMNS"] = "120"  # tables are not broken by a narrow terminal

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # Python runs the kernels; must be set before any import


def pytest_configure() -> None:
    torch.set_num_threads(1)
    # Tests started in the background ignore interrupts, and so would processes they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        config.hook.pytest_deselected(items=on_gpu)
        items[:] = [item for item in items if item not in on_gpu]


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Relative paths, such as runs/, are in a temporary folder and not in the checkout."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("working-directory"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A resumed run restores its thread count; the next test starts from one again."""
    yield
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
