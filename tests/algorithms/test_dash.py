"""Dash: the specified limits, and a warm-up on the labels only."""

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from fullmatch.algorithms import Dash
from fullmatch.algorithms.dash import LossLimit
from fullmatch.algorithms.pseudo_labeling import Passes, PseudoLabels
from fullmatch.core import FallingLimit, Output
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from tests.algorithms.agreement import assert_agrees
from tests.networks import random_batch, tiny_task
from tests.reference import thresholds


def labeler(rho_init: float, **options: Any) -> LossLimit:
    """The state after a warm-up with a mean labeled loss of rho_init."""
    limit = LossLimit(Dash(**options))
    limit.labeled_loss.fill_(rho_init)
    limit.steps.fill_(5000)
    return limit


def pseudo(limit: LossLimit, probs: list[list[float]], progress: float) -> PseudoLabels:
    task = tiny_task(len(probs[0]))
    batch = random_batch(task, Dash.views, labeled=len(probs), unlabeled=len(probs))
    output = Output(torch.tensor(probs).log(), torch.zeros(len(probs), 16))
    return limit(Passes(output, output, (output,), None), batch, torch.tensor(progress))


@pytest.mark.parametrize(
    ("falls", "rho"), [(0, 2.0002), (1, 1.5749606), (5, 0.6054173), (15, 0.0554648), (16, 0.05)]
)
def test_rho_falls_to_its_minimum(falls: int, rho: float) -> None:
    limit = labeler(2.0)
    for progress in (falls * 10 / 1024, (falls + 0.99) * 10 / 1024):
        torch.testing.assert_close(limit.rho(torch.tensor(progress)), torch.tensor(rho))


def test_soft_labels_above_the_minimum_rho() -> None:
    actual = pseudo(labeler(2.0), [[0.6, 0.3, 0.1]], 0.0)
    torch.testing.assert_close(actual.target, torch.tensor([[0.7826087, 0.1956522, 0.0217391]]))
    for rho, selected in ((0.6853, 0.0), (0.6855, 1.0)):
        limit = labeler(rho, factor=1.0)
        assert pseudo(limit, [[0.6, 0.3, 0.1]], 0.0).weight.item() == selected


def test_hard_labels_at_the_minimum_rho() -> None:
    edge = math.exp(-0.05)
    rows = [[edge + 1e-4, 0.04, 1 - edge - 0.0401], [edge - 1e-4, 0.04, 1 - edge - 0.0399]]
    actual = pseudo(labeler(2.0), rows, 0.9)
    torch.testing.assert_close(actual.target, torch.tensor([[1.0, 0.0, 0.0]] * 2))
    torch.testing.assert_close(actual.weight, torch.tensor([1.0, 0.0]))


def test_agrees_with_the_reference() -> None:
    progress = (0.0, 0.001, 0.002, 0.003, 0.014, 0.5)
    assert_agrees(Dash(warmup=3), thresholds.Dash, progress=progress)


def test_warm_up_uses_no_unlabeled_image_and_ends_early_in_a_short_run() -> None:
    limit = LossLimit(Dash())
    sure = [[0.999, 0.0005, 0.0005]]
    for progress, selected in ((0.0, 0.0), (0.09, 0.0), (0.1, 1.0), (0.2, 1.0)):
        assert pseudo(limit, sure, progress).weight.item() == selected
    assert limit.steps.item() == 4


def test_a_step_in_parts_counts_once() -> None:
    whole, parts = LossLimit(Dash(warmup=3)), LossLimit(Dash(warmup=3))
    batch = random_batch(tiny_task(2), Dash.views)._replace(labels=torch.tensor([0]))

    def warm_up(limit: LossLimit, chance: float, step: int) -> bool:
        output = Output(torch.tensor([[chance, 1 - chance]]).log(), torch.zeros(1, 16))
        passes = Passes(output, output, (output,), None)
        return bool(limit.warm_up(passes, batch, torch.tensor(step / 100)))

    for step, chance in enumerate((0.2, 0.4, 0.6, 0.8, 0.9)):
        answers = warm_up(whole, chance, step), warm_up(parts, chance, step)
        assert {*answers, warm_up(parts, 0.5, step)} == {step < 3}
    assert parts.labeled_loss.equal(whole.labeled_loss)
    assert parts.start.equal(whole.start)


@pytest.mark.parametrize(("measured", "chance"), [("start", 0.1), ("end", 0.5)])
def test_the_end_of_the_warm_up_that_is_measured(
    measured: Literal["start", "end"], chance: float
) -> None:
    limit = LossLimit(Dash(measured=measured))
    batch = random_batch(tiny_task(2), Dash.views)._replace(labels=torch.tensor([0]))
    for step in range(600):
        probs = torch.tensor([[0.1, 0.9] if step < 100 else [0.5, 0.5]])
        output = Output(probs.log(), torch.zeros(1, 16))
        progress = torch.tensor(step / 10_000)
        limit.warm_up(Passes(output, output, (output,), None), batch, progress)
    assert limit.labeled_loss.item() == pytest.approx(-math.log(chance), abs=0.02)


def test_the_limit_moves_even_if_the_labels_are_learned_during_the_warm_up() -> None:
    """With few labels the labeled loss is 0.001 long before the warm-up ends."""
    limit = LossLimit(Dash())
    batch = random_batch(tiny_task(2), Dash.views)._replace(labels=torch.tensor([0]))
    for step in range(400):
        loss = max(0.7 * 0.9**step, 0.001)
        probs = torch.tensor([[math.exp(-loss), 1 - math.exp(-loss)]])
        output = Output(probs.log(), torch.zeros(1, 16))
        limit.warm_up(Passes(output, output, (output,), None), batch, torch.tensor(step / 10_000))
    rhos = [limit.rho(torch.tensor(0.04 + 0.01 * fall)).item() for fall in range(6)]
    assert rhos[0] == pytest.approx(0.07, rel=0.02)
    assert rhos[0] > rhos[1] > 1.01 * Dash.rho_min
    assert rhos[-1] == pytest.approx(Dash.rho_min)


def test_the_limit_of_a_digits_run_moves(tmp_path: Path) -> None:
    """40 labels are learned in 400 steps: the last labeled losses are far below the floor."""
    settings = ("algorithm.longest_warmup=1", "algorithm.warmup=400", "training.steps=440")
    quick = ("training.ratio=1", "training.evaluate_every=1000", "training.log_every=10")
    config = resolve(data="digits", algorithm="dash", assignments=(*settings, *quick))
    run = start(config, RunFolder(tmp_path / "run"))
    curves = [record.metrics for record in run.records() if record.metrics]
    assert curves[39]["supervised"] < 0.1 * Dash.rho_min  # at the end of the warm-up
    after = [curve["rho"] for curve in curves[40:]]
    assert after[0] > 2 * Dash.rho_min
    assert after[0] > after[-1]
    assert run.result.health == ()


@pytest.mark.parametrize(
    ("spec", "steps", "expected"),
    [
        (Dash(), 2**20, FallingLimit(2048, 0.05, True)),
        (Dash(), 1600, FallingLimit(160, 0.05, True)),
        (Dash(warmup=0, rho_min=0.1, measured="end"), 1600, FallingLimit(1, 0.1, False)),
    ],
)
def test_when_the_limit_starts(spec: Dash, steps: int, expected: FallingLimit) -> None:
    assert spec.falling_limit(steps) == expected


def test_threshold_is_not_a_setting() -> None:
    assert "threshold" not in {field.name for field in dataclasses.fields(Dash)}
    with pytest.raises(TypeError):
        Dash(threshold=0.9)
