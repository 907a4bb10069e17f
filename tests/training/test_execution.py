"""What `auto` selects, and errors for what a machine does not support."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.training import execution
from fullmatch.training.execution import explain_out_of_memory, resolve_execution, resolve_precision
from tests.lockstep import paired_losses, start_short_run
from tests.small_runs import STEPS

CPU = torch.device("cpu")
GPU = torch.device("cuda")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", sys.executable)  # a program that exists


@pytest.mark.usefixtures("compiler")
def test_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: True)
    assert resolve_execution("auto", CPU) == "eager"
    assert resolve_execution("auto", GPU) == "graph"
    assert resolve_execution("compiled", CPU) == "compiled"
    assert resolve_execution("eager", GPU) == "eager"
    with pytest.raises(UserError, match="graph needs an NVIDIA GPU"):
        resolve_execution("graph", CPU)


def test_own_views_are_recorded_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: True)
    assert resolve_execution("auto", GPU, own_views=True) == "compiled"
    assert resolve_execution("graph", GPU, own_views=True) == "graph"
    assert resolve_execution("auto", CPU, own_views=True) == "eager"


@pytest.mark.usefixtures("compiler")
def test_execution_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "has_triton", lambda: False)
    assert resolve_execution("auto", GPU) == "eager"
    assert resolve_execution("compiled", CPU) == "compiled"
    with pytest.raises(UserError, match="graph needs Triton"):
        resolve_execution("graph", GPU)


def test_execution_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert resolve_execution("auto", CPU) == "eager"
    with pytest.raises(UserError, match=r"C\+\+ compiler, and no-such-compiler was not found"):
        resolve_execution("compiled", CPU)


@pytest.mark.no_cover  # it would slow the compiler down
def test_compiled_steps_equal_eager_ones(tmp_path: Path) -> None:
    """If there is a compiler; otherwise the error says so."""
    eager = start_short_run("fullmatch", "eager", tmp_path / "eager")
    if not (torch.cuda.is_available() or shutil.which(execution.CXX)):
        with pytest.raises(UserError, match="compiler"):
            start_short_run("fullmatch", "compiled", tmp_path / "compiled")
        return
    pairs = list(
        paired_losses(start_short_run("fullmatch", "compiled", tmp_path / "compiled"), eager)
    )
    assert len(pairs) == STEPS
    tolerance = 0.05 if torch.cuda.is_available() else 1e-5  # bfloat16 or float32
    for found, expected in pairs:
        assert found == pytest.approx(expected, rel=tolerance)


def test_precision() -> None:
    assert resolve_precision("auto", CPU) == "fp32"
    assert resolve_precision("fp32", GPU) == "fp32"
    with pytest.raises(UserError, match="bf16 needs a GPU"):
        resolve_precision("bf16", CPU)


def test_out_of_memory_error_has_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * 2**30, 8 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5 * 2**30)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 4 * 2**30)
    with pytest.raises(UserError) as error:
        explain_out_of_memory(step, GPU, 64)()
    message = str(error.value)
    assert "more than 4.0 GiB" in message
    assert "there are 8.0 GiB" in message
    assert "other programs use 1.0 GiB" in message
    assert "training.batch=32" in message
    with pytest.raises(UserError, match="GiB: a smaller"):
        explain_out_of_memory(step, GPU, 1)()
