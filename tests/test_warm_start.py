"""A new run starts where an earlier one ended, class by class."""

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.models import network
from fullmatch.trained import TrainedRun
from fullmatch.warm_start import start_from
from tests.served import pets_run

IMAGE = (3, 32, 32)


def test_the_same_classes_give_the_same_network() -> None:
    old = TrainedRun(pets_run()).classifier
    fresh = network("wrn-10-1", 2, IMAGE)
    assert start_from(pets_run(), fresh, old.classes) == f"starts from {pets_run()}"
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(tensor, old.network.state_dict()[name]), name


def test_classes_keep_their_rows_and_new_ones_start_anew() -> None:
    old = TrainedRun(pets_run()).classifier
    first, second = old.classes
    fresh = network("wrn-10-1", 3, IMAGE)
    before = fresh.state_dict()["head.weight"].clone()
    said = start_from(pets_run(), fresh, (second, "owl", first))
    assert said.endswith("; new to it: owl")
    pictures = torch.rand(4, *IMAGE)
    with torch.no_grad():
        ours = fresh.eval()(pictures).logits
        theirs = old.network(pictures).logits
    assert torch.allclose(ours[:, [2, 0]], theirs, atol=1e-5)
    assert torch.equal(fresh.state_dict()["head.weight"][1], before[1])


@pytest.mark.parametrize(
    ("model", "channels", "classes", "message"),
    [
        ("wrn-10-2", 3, ("cat | tiger", "x"), "another network"),
        ("wrn-16-1", 3, ("cat | tiger", "x"), "another network"),
        ("wrn-10-1", 1, ("cat | tiger", "x"), "other channels"),
        ("wrn-10-1", 3, ("x", "y"), "none of these classes"),
    ],
)
def test_what_does_not_fit_is_refused(
    model: str, channels: int, classes: tuple[str, ...], message: str
) -> None:
    fresh = network(model, len(classes), (channels, 32, 32))
    before = {name: tensor.clone() for name, tensor in fresh.state_dict().items()}
    with pytest.raises(UserError, match=message):
        start_from(pets_run(), fresh, classes)
    assert all(torch.equal(before[name], t) for name, t in fresh.state_dict().items())
