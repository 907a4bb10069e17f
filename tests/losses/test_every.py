"""What holds for every loss alike."""

import inspect
from collections.abc import Callable

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


X, P = torch.randn(4, 5), torch.rand(4, 5).softmax(dim=1)
SPREAD = [
    (losses.cosine_distance, (X, X, torch.ones(4, 1)), "weight"),
    (losses.low_probability_negative, (X, P[:1]), "probs"),
    (losses.low_probability_negative, (X, P, 0.1, torch.ones(4, 1)), "weight"),
    (losses.negative_learning, (X, torch.ones(1, 5, dtype=torch.bool)), "negative"),
    (losses.self_adaptive_fairness, (X, torch.ones(4, 1), P[0], P[0]), "weight"),
    (losses.self_adaptive_fairness, (X, torch.ones(4), P[0, :1], P[0]), "mean_probs"),
]


@pytest.mark.parametrize(("function", "given", "name"), SPREAD)
def test_nothing_is_spread_over_the_others(
    function: Callable[..., Tensor], given: tuple[object, ...], name: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} must have the shape"):
        function(*given)


def test_of_no_rows_the_loss_is_0() -> None:
    none = torch.zeros(0, 5)
    assert losses.cosine_distance(none, none) == 0
    assert losses.alpha_divergence(none, none, 0.5) == 0
    assert losses.low_probability_negative(none, none) == 0
