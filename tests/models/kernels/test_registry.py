"""Operators are registered with compilers that need it."""

import pytest
import torch
from torch._inductor import lowering
from torch.torch_version import TorchVersion

from fullmatch.models.kernels.registry import OPERATORS, register_operators


def test_all_operators_are_registered_with_older_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(OPERATORS) >= {"convolution", "normalize", "move_statistics"}
    operators = {getattr(torch.ops.fullmatch, name).default for name in OPERATORS}
    for operator in operators:
        monkeypatch.delitem(lowering.lowerings, operator, raising=False)
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.13.0"))
    register_operators()
    assert not operators & lowering.lowerings.keys()
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.12.1"))
    register_operators()
    register_operators()  # a second call is harmless
    assert operators <= lowering.lowerings.keys()
