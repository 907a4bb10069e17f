"""DebiasPL: what the network prefers is removed from labels and added as a margin."""

import torch

from fullmatch.algorithms import DebiasPL, FixMatch
from fullmatch.algorithms.debiaspl import ClassPreference
from tests.algorithms import fixed_views
from tests.algorithms.agreement import assert_agrees
from tests.reference import debiaspl as reference


def test_agrees_with_the_reference() -> None:
    assert_agrees(DebiasPL(threshold=0.6, factor=0.7, momentum=0.6), reference.Reference)


def test_preferred_class_loses_a_close_decision() -> None:
    algorithm = DebiasPL(factor=1.0, momentum=0.0, threshold=0.0).build(fixed_views.echo_task(2))
    weak = [[0.9, 0.1], [0.9, 0.1], [0.55, 0.45]]
    batch = fixed_views.batch(weak, weak)
    network = fixed_views.Echo(2)
    passes = algorithm.passes(network, batch)
    pseudo = algorithm.labeler(passes, batch, torch.tensor(0.5))
    assert passes.weak.logits[2].argmax() == 0
    assert pseudo.label.tolist() == [0, 0, 1]


def test_factor_zero_is_fixmatch() -> None:
    task = fixed_views.echo_task(3)
    batch = fixed_views.batch([[0.97, 0.02, 0.01], [0.4, 0.3, 0.3]], [[0.5, 0.3, 0.2]] * 2)
    expected = fixed_views.objective(FixMatch().build(task), batch).loss
    actual = fixed_views.objective(DebiasPL(factor=0.0).build(task), batch).loss
    torch.testing.assert_close(actual, expected, check_dtype=False)


def test_class_that_is_never_predicted_stays_finite() -> None:
    preference = ClassPreference(2, momentum=0.0)
    preference.remember(torch.tensor([[1.0, 0.0]]))
    assert preference().isfinite().all()
