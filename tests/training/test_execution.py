"""What `auto` means, and that asking for what a machine lacks is an error in one line."""

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.training import execution
from fullmatch.training.execution import chosen_execution, chosen_precision

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
