"""What `auto` means, and that asking for what a machine lacks is an error in one line."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.training import execution
from fullmatch.training.execution import chosen_execution, chosen_precision, within_memory
from tests.lockstep import in_step, started
from tests.small_runs import STEPS

CPU = torch.device("cpu")
GPU = torch.device("cuda")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", sys.executable)  # something that is there


@pytest.mark.usefixtures("compiler")
def test_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: True)
    assert chosen_execution("auto", CPU) == "eager"
    assert chosen_execution("auto", GPU) == "graph"
    assert chosen_execution("compiled", CPU) == "compiled"
    assert chosen_execution("eager", GPU) == "eager"
    with pytest.raises(UserError, match="graph needs an NVIDIA GPU"):
        chosen_execution("graph", CPU)


@pytest.mark.usefixtures("compiler")
def test_execution_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: False)
    assert chosen_execution("auto", GPU) == "eager"
    assert chosen_execution("compiled", CPU) == "compiled"
    with pytest.raises(UserError, match="graph needs Triton"):
        chosen_execution("graph", GPU)


def test_execution_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert chosen_execution("auto", CPU) == "eager"
    with pytest.raises(UserError, match=r"C\+\+ compiler, and there is no no-such-compiler"):
        chosen_execution("compiled", CPU)


def test_compiled_steps_are_the_eager_ones(tmp_path: Path) -> None:
    """Where there is a compiler; where there is none, asking for it ends in one line."""
    eager = started("fullmatch", "eager", tmp_path / "eager")
    if not (torch.cuda.is_available() or shutil.which(execution.CXX)):
        with pytest.raises(UserError, match="compiler"):
            started("fullmatch", "compiled", tmp_path / "compiled")
        return
    pairs = list(in_step(started("fullmatch", "compiled", tmp_path / "compiled"), eager))
    assert len(pairs) == STEPS
    near = 0.05 if torch.cuda.is_available() else 1e-5  # bfloat16 or float32
    for found, expected in pairs:
        assert found == pytest.approx(expected, rel=near)


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
