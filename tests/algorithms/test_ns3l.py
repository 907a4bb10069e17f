"""NS3L: FixMatch and its negative loss."""

from fullmatch.algorithms import NS3L
from tests.algorithms.agreement import assert_agrees
from tests.reference import thresholds


def test_agrees_with_the_reference() -> None:
    assert_agrees(NS3L(negative_threshold=0.2, negative_coefficient=0.7), thresholds.NS3L)
