"""What `auto` means, and that asking for what a machine lacks is an error in one line."""

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.training import execution
from fullmatch.training.execution import chosen_execution, chosen_precision, within_memory

CPU = torch.device("cpu")
GPU = torch.device("cuda")


def test_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: True)
    assert chosen_execution("auto", CPU) == "eager"
    assert chosen_execution("auto", GPU) == "graph"
    assert chosen_execution("compiled", CPU) == "compiled"
    assert chosen_execution("eager", GPU) == "eager"
    with pytest.raises(UserError, match="graph needs an NVIDIA GPU"):
        chosen_execution("graph", CPU)


def test_execution_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: False)
    assert chosen_execution("auto", GPU) == "eager"
    assert chosen_execution("compiled", CPU) == "compiled"
    with pytest.raises(UserError, match="graph needs Triton"):
        chosen_execution("graph", GPU)


def test_precision() -> None:
    assert chosen_precision("auto", CPU) == "fp32"
    assert chosen_precision("fp32", GPU) == "fp32"
    with pytest.raises(UserError, match="bf16 needs a GPU"):
        chosen_precision("bf16", CPU)


def test_too_little_memory_is_said_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * 2**30, 8 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5 * 2**30)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 4 * 2**30)
    with pytest.raises(UserError) as said:
        within_memory(step, GPU, 64)()
    words = str(said.value)
    assert "more than 4.0 GiB" in words and "there are 8.0 GiB" in words
    assert "other programs hold 1.0 GiB" in words and "training.batch=32" in words
    with pytest.raises(UserError, match="GiB: a smaller"):
        within_memory(step, GPU, 1)()
