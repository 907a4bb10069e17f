"""Phases: which steps they have, and the batch that is read in them."""

import pytest
import torch

from fullmatch.data.feed import RawBatch
from fullmatch.training.phases import MAIN, Phase, PhasedStep, Phases
from fullmatch.training.step import take_unlabeled


def shares(phases: Phases) -> list[float]:
    return [phases.at(step).unlabeled for step in range(phases.steps)]


def test_without_settings_there_is_one_phase() -> None:
    phases = Phases(10)
    assert phases.all() == (MAIN,)
    assert {phases.at(step) for step in range(20)} == {MAIN}


def test_the_unlabeled_batch_grows_evenly() -> None:
    assert shares(Phases(8, curriculum=0.0)) == [0.25] * 3 + [0.5] * 2 + [1.0] * 3


def test_it_grows_later_with_a_larger_curriculum() -> None:
    early, late = shares(Phases(100, curriculum=0.0)), shares(Phases(100, curriculum=0.7))
    assert late == sorted(late)
    assert [late.count(share) for share in (0.25, 0.5, 1.0)] == [53, 24, 23]
    assert sum(late) < sum(early)


def test_a_self_supervised_start_comes_first() -> None:
    phases = Phases(20, curriculum=0.5, self_supervised=0.25)
    assert [phases.at(step).self_supervised for step in range(20)] == [True] * 5 + [False] * 15
    assert phases.at(5) == Phase(0.25)
    assert phases.at(19) == phases.at(1000) == MAIN
    assert phases.all() == (Phase(self_supervised=True), Phase(0.25), Phase(0.5), MAIN)


def test_every_step_has_the_step_of_its_phase() -> None:
    taken: list[str] = []
    now = [Phase(0.25), MAIN, MAIN]
    steps = {Phase(0.25): lambda: taken.append("small"), MAIN: lambda: taken.append("whole")}
    phased = PhasedStep(steps, lambda: now.pop(0))
    for _ in range(3):
        phased()
    assert taken == ["small", "whole", "whole"]


@pytest.mark.parametrize(("share", "count"), [(0.25, 2), (0.5, 3), (1.0, 6)])
def test_a_phase_reads_the_first_unlabeled_images(share: float, count: int) -> None:
    images, place = torch.rand(6, 1, 2, 2), torch.arange(6)
    raw = RawBatch(images[:2], place[:2], place[:2], images, place, place + 10)
    taken = take_unlabeled(raw, share)
    assert torch.equal(taken.unlabeled, images[:count])
    assert taken.unlabeled_index.tolist() == list(range(count))
    assert taken.hidden_labels.tolist() == list(range(10, 10 + count))
    assert torch.equal(taken.labeled, raw.labeled)
