"""ReMixMatch: aligned guesses and rotated images."""

from dataclasses import replace

import pytest
import torch

from fullmatch.algorithms import ReMixMatch
from fullmatch.errors import UserError
from tests.algorithms.agreement import assert_agrees
from tests.networks import tiny_task
from tests.reference import mixing


@pytest.mark.parametrize("interleave", [False, True])
def test_agrees_with_the_reference(interleave: bool) -> None:
    task = replace(tiny_task(), class_prior=(0.4, 0.3, 0.2, 0.1))
    assert_agrees(ReMixMatch(momentum=0.7, interleave=interleave), mixing.ReMixMatch, task=task)


def test_average_is_of_predictions_before_alignment() -> None:
    algorithm = ReMixMatch(momentum=0.5).build(tiny_task(2))
    skewed = torch.tensor([[0.9, 0.1], [0.7, 0.3]])
    torch.testing.assert_close(algorithm.predicted(skewed), torch.tensor([0.8, 0.2]))
    torch.testing.assert_close(
        algorithm.predicted(torch.tensor([[0.4, 0.6]])), torch.tensor([0.6, 0.4])
    )


def test_images_must_be_square() -> None:
    with pytest.raises(UserError, match="square, not 8x6"):
        ReMixMatch().build(replace(tiny_task(), image=(1, 8, 6)))
