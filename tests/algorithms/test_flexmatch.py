"""FlexMatch against a reference with a Counter, and at published points."""

import pytest
import torch

from fullmatch.algorithms import FlexMatch
from fullmatch.algorithms.flexmatch import CurriculumThreshold
from tests.algorithms.fixed_views import batch, echo_task, objective
from tests.reference.flexmatch import CounterThresholds


def curriculum(classes: int, images: int, *, warmup: bool = True) -> CurriculumThreshold:
    return CurriculumThreshold(0.95, echo_task(classes, images), warmup=warmup)


def remembering(counts: tuple[int, ...], unused: int, *, warmup: bool) -> CurriculumThreshold:
    one = curriculum(len(counts), sum(counts) + unused, warmup=warmup)
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    one.last_confident[: len(labels)] = torch.tensor(labels)
    one.derive_memory()
    return one


@pytest.mark.parametrize(
    ("counts", "unused", "warmup", "expected"),
    [
        ((4, 2, 1), 3, True, (0.95, 0.3166667, 0.1357143)),
        ((2, 1, 0), 7, True, (0.1583333, 0.0730769, 0.0)),
        ((2, 1, 0), 7, False, (0.95, 0.3166667, 0.0)),
        ((0, 0, 0), 10, True, (0.0, 0.0, 0.0)),
        ((0, 0, 0), 10, False, (0.0, 0.0, 0.0)),
    ],
)
def test_published_thresholds(
    counts: tuple[int, ...], unused: int, warmup: bool, expected: tuple[float, ...]
) -> None:
    actual = remembering(counts, unused, warmup=warmup).thresholds()
    assert actual.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("warmup", [True, False])
def test_against_the_counter(warmup: bool) -> None:
    """Increasingly sharp predictions, over many steps, on shuffled images."""
    torch.manual_seed(0)
    classes, images, size = 5, 60, 12
    fast = curriculum(classes, images, warmup=warmup)
    slow = CounterThresholds(0.95, classes, images, warmup=warmup)
    weights = set()
    for step in range(120):
        probs = (torch.randn(size, classes).double() * (1 + step / 15)).softmax(dim=1)
        index = torch.randperm(images)[:size]
        actual = fast(probs, index).tolist()
        assert actual == slow.step(probs.tolist(), index.tolist())
        expected = [classes if s == -1 else s for s in slow.status]
        assert fast.last_confident.tolist() == expected
        assert fast.counts.tolist() == [expected.count(label) for label in range(classes + 1)]
        assert fast.thresholds().tolist() == pytest.approx(slow.of_classes(), abs=1e-6)
        weights |= set(actual)
    assert weights == {0.0, 1.0}


def test_thresholds_of_a_step_are_those_before_it() -> None:
    """The status is written after the weights, using the fixed threshold."""
    built = FlexMatch().build(echo_task(3, num_unlabeled=2))
    weak = [[0.96, 0.03, 0.01], [0.50, 0.30, 0.20]]
    first = objective(built, batch(weak, weak)).metrics["selected"]
    second = objective(built, batch(weak, weak)).metrics["selected"]
    assert (float(first), float(second)) == (1.0, 0.5)  # class 0 then needs 0.95
    assert built.get_buffer("labeler.weighting.last_confident").tolist() == [0, 3]


def test_a_label_is_never_forgotten() -> None:
    one = curriculum(3, 4)
    one(torch.tensor([[0.97, 0.02, 0.01]]), torch.tensor([2]))
    one(torch.tensor([[0.2, 0.5, 0.3]]), torch.tensor([2]))
    assert one.last_confident.tolist() == [3, 3, 0, 3]
    one(torch.tensor([[0.0, 0.99, 0.01]]), torch.tensor([2]))
    assert one.last_confident.tolist() == [3, 3, 1, 3]
