"""What holds for every loss alike."""

import inspect

import pytest
import torch
from torch import Tensor

from fullmatch import losses

FUNCTIONS = [name for name in losses.__all__ if inspect.isfunction(getattr(losses, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_list_is_refused_by_its_name(name: str) -> None:
    function = getattr(losses, name)
    needed = {
        key: parameter.annotation
        for key, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    }
    for key in (key for key, kind in needed.items() if kind is Tensor):
        if key == "skew":
            continue  # a number does as well
        given = {k: torch.rand(2, 3) if kind is Tensor else 2 for k, kind in needed.items()}
        with pytest.raises(TypeError, match=f"{key} must be a tensor; got list"):
            function(**(given | {key: [[0.2, 0.8]]}))
