"""IOMatch against a version by image, and what its parts mean."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fullmatch.algorithms import FixMatch, IOMatch
from fullmatch.algorithms.iomatch import one_vs_all_loss, open_set_target
from fullmatch.core import Algorithm, Objective
from tests.algorithms.agreement import confident_network
from tests.algorithms.toy import TASK as TOY_TASK
from tests.algorithms.toy import Toy, textures
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import iomatch as reference

TASK = tiny_task(4)
UNEVEN: dict[str, Any] = {"one_vs_all": 0.7, "open_weight": 1.3, "coefficient": 0.9, "width": 8}


@pytest.mark.parametrize("align", [True, False])
def test_agrees_with_the_reference(align: bool) -> None:
    torch.manual_seed(0)
    spec = IOMatch(
        threshold=0.8, open_threshold=0.4, open_start=0.25, align=align, batches=2, **UNEVEN
    )
    algorithm, network = spec.build(TASK), confident_network(4)
    with torch.no_grad():
        algorithm.heads.one_vs_all.weight.normal_(std=2)
    slow = reference.Reference(spec, algorithm.heads)
    shares = []
    for step in range(4):
        batch = random_batch(TASK, algorithm.views, unlabeled=12)
        weak, strong = batch.unlabeled
        weak = weak * torch.linspace(0, 8, 12)[:, None, None, None]  # some look unknown then
        batch = batch._replace(unlabeled=(weak, strong))
        expected = slow.loss(network, batch, 0.1 * step)
        actual = algorithm(network, network, batch, torch.tensor(0.1 * step))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-5)
        shares.append([float(actual.metrics[name]) for name in ("looks_known", "selected")])
    known, selected = torch.tensor(shares).mean(dim=0).tolist()
    assert 0 < selected < known < 1


def test_open_set_target_is_a_distribution() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]])
    inlier = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.2, 0.6]])
    target = open_set_target(probs, inlier)
    expected = torch.tensor([[0.9, 0.0, 0.1], [0.0, 0.1, 0.9], [0.1, 0.3, 0.6]])
    torch.testing.assert_close(target, expected)
    torch.testing.assert_close(target.sum(dim=1), torch.ones(3))


def test_one_vs_all_loss_takes_the_hardest_other_class() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5]], requires_grad=True)
    loss = one_vs_all_loss(logits, torch.tensor([0]))
    expected = -torch.tensor(2.0).sigmoid().log() - torch.tensor(-0.5).sigmoid().log()
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert logits.grad is not None
    assert (logits.grad != 0).tolist() == [[True, False, True]]


def test_very_certain_one_vs_all_heads_still_learn() -> None:
    logits = torch.tensor([[-200.0, 200.0]], requires_grad=True)
    loss = one_vs_all_loss(logits, torch.tensor([0]))
    assert float(loss.detach()) == pytest.approx(400.0)
    loss.backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0]]))


def answer_always(algorithm: Algorithm, bias: float) -> None:
    """Make the one-vs-all heads say yes to everything, or no."""
    with torch.no_grad():
        algorithm.get_parameter("heads.projection.2.bias").fill_(1.0)
        weight = algorithm.get_parameter("heads.one_vs_all.weight")
        weight[:4], weight[4:] = 0.0, bias


def step_with_heads(bias: float, **settings: Any) -> tuple[Algorithm, Objective, Tensor]:
    """A step with such heads, and its strong view."""
    torch.manual_seed(0)
    algorithm, network = IOMatch(threshold=0.0, **settings).build(TASK), confident_network(4)
    answer_always(algorithm, bias)
    batch = random_batch(TASK, algorithm.views)
    strong = batch.unlabeled[1].requires_grad_()
    return algorithm, algorithm(network.eval(), network, batch, torch.tensor(0.5)), strong


def test_images_that_look_unknown_teach_only_the_open_set_head() -> None:
    _, known, _ = step_with_heads(9.0)
    assert known.metrics["selected"] == known.metrics["looks_known"] == 1
    _, unknown, _ = step_with_heads(-9.0)
    assert unknown.metrics["selected"] == unknown.metrics["looks_known"] == 0
    assert unknown.metrics["consistency"] == 0
    assert unknown.metrics["open_set"] > 0


@pytest.mark.parametrize(("start", "expected"), [(0.6, False), (0.5, True)])
def test_open_set_loss_begins_later(start: float, expected: bool) -> None:
    settings: dict[str, Any] = {"one_vs_all": 0.0, "coefficient": 0.0, "open_start": start}
    algorithm, objective, strong = step_with_heads(-9.0, **settings)
    objective.loss.backward()
    assert strong.grad is not None
    assert bool(strong.grad.any()) is expected
    gradient = algorithm.get_parameter("heads.open_set.weight").grad
    assert gradient is not None
    assert bool(gradient.any()) is expected


def test_is_fixmatch_with_soft_labels_when_its_parts_are_off() -> None:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"one_vs_all": 0.0, "open_weight": 0.0, "align": False}
    network = confident_network(4)
    algorithm = IOMatch(threshold=0.6, **settings).build(TASK)
    answer_always(algorithm, 9.0)
    plain = FixMatch(threshold=0.6).build(TASK)
    batch = random_batch(TASK, algorithm.views, unlabeled=12)
    ours = algorithm(copy.deepcopy(network), network, batch, torch.tensor(0.5))
    theirs = plain(copy.deepcopy(network), network, batch, torch.tensor(0.5))
    assert ours.metrics["selected"] == theirs.metrics["selected"]
    torch.testing.assert_close(ours.metrics["supervised"], theirs.metrics["supervised"])


class OpenToy(Toy):
    """The textures, of which the last one has no label."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.student = TinyNetwork(3)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.algorithm = spec.build(replace(TOY_TASK, num_classes=3, class_prior=(1 / 3,) * 3))
        images, labels = textures(2 * TOY_TASK.num_labeled)
        known = labels < 3
        self.labeled = images[known][:16], labels[known][:16]
        images, labels = self.unlabeled
        self.unlabeled = images, labels.where(labels < 3, -1)


def test_recognizes_a_class_without_labels() -> None:
    toy = OpenToy(IOMatch())
    toy.train(100)
    images, labels = textures(256)
    toy.student.eval()
    with torch.no_grad():
        probs = toy.algorithm.predict_open_set(toy.student, images)
        closed = toy.algorithm.predict(toy.student, images)
    assert probs.shape == (256, 4)
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(256))
    known = labels < 3
    assert (closed.argmax(dim=1) == labels)[known].float().mean() > 0.95
    assert roc_auc_score(known, 1 - probs[:, 3]) > 0.95


def test_only_open_set_methods_predict_unknown() -> None:
    assert IOMatch().open_set
    assert IOMatch().build(TASK).predicts_unknown
    assert not FixMatch().open_set
    plain = FixMatch().build(TASK)
    assert not plain.predicts_unknown
    with pytest.raises(NotImplementedError):
        plain.predict_open_set(TinyNetwork(4), torch.zeros(1, 1, 8, 8))
