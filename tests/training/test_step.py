"""One step: requested views, one forward, then clip, update and average."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fullmatch.augment.views import Augmenter
from fullmatch.config import OptimizerConfig
from fullmatch.core import Algorithm, Appearance, Batch, Network, Objective, Views
from fullmatch.data.feed import RawBatch
from fullmatch.errors import UserError
from fullmatch.training.state import TrainState
from fullmatch.training.step import (
    RESERVED,
    Augmentation,
    Loss,
    TrainingStep,
    autocast,
    checked_metrics,
)
from tests.networks import TinyNetwork

CPU = torch.device("cpu")
APPEARANCE = Appearance(mean=(0.5,), std=(0.25,), padding=1)


class RecordingAlgorithm(Algorithm):
    """Keeps its batch, and gives every parameter a gradient of 1000."""

    views = Views(labeled=("plain", "weak"), unlabeled=("strong", "plain"))

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        self.batch = batch
        loss = sum((p.sum() for p in student.parameters()), torch.zeros(())) * 1000
        return Objective(loss, {"progress": progress})


def raw() -> RawBatch:
    images = torch.randint(256, (5, 1, 8, 8), dtype=torch.uint8)
    place = torch.arange(3)
    return RawBatch(images[:2], place[:2], place[:2], images[2:], place, -torch.ones(3).long())


class OneBatch:
    notes: tuple[str, ...] = ()
    wait_seconds = 0.0

    def __init__(self, batch: RawBatch | None = None) -> None:
        self.raw = raw() if batch is None else batch

    def seek(self, step: int) -> None: ...

    def batch(self) -> RawBatch:
        return self.raw


def step(
    clip: float = 0.0,
    accumulate: int = 1,
    algorithm: Algorithm | None = None,
    batch: RawBatch | None = None,
) -> TrainingStep:
    state = TrainState(
        TinyNetwork(3),
        algorithm or RecordingAlgorithm(),
        optimizer=OptimizerConfig(weight_decay=0.0, momentum=0.0, nesterov=False),
        device=CPU,
    )
    state.set_rate(0.5)
    views = Augmentation(Augmenter(APPEARANCE), state.algorithm.views)
    loss = Loss(state.student, state.teacher, state.algorithm)
    return TrainingStep(
        state,
        OneBatch(batch),
        views,
        loss,
        ema=0.9,
        clip=clip,
        bf16=False,
        accumulate=accumulate,
    )


def test_views_come_in_the_requested_order() -> None:
    one = step()
    one()
    batch, raw = one.state.algorithm.batch, one.feed.batch()
    assert isinstance(batch, Batch)
    plain = (raw.labeled / 255 - 0.5) / 0.25
    assert torch.equal(batch.labeled[0], plain)
    assert not torch.equal(batch.labeled[1], plain)
    assert torch.equal(batch.unlabeled[1], (raw.unlabeled / 255 - 0.5) / 0.25)
    assert [len(view) for view in (*batch.labeled, *batch.unlabeled)] == [2, 2, 3, 3]
    assert torch.equal(batch.labels, raw.labels)
    assert torch.equal(batch.unlabeled_index, raw.unlabeled_index)
    assert not any(view.requires_grad for view in (*batch.labeled, *batch.unlabeled))


def test_updates_then_averages_then_adds_totals() -> None:
    one = step()
    before = one.state.student.head.bias.clone()
    one.state.progress.fill_(0.25)
    one()
    after = one.state.student.head.bias
    torch.testing.assert_close(after, before - 500)
    torch.testing.assert_close(one.state.teacher.head.bias, before - 50)
    assert all(p.grad is None for p in one.state.student.parameters())
    assert one.state.totals.read()["progress"] == 0.25


def test_metrics_are_reported_without_gradients() -> None:
    one = step()
    bias = one.state.student.head.bias
    one.state.algorithm.forward = lambda *_: Objective(  # type: ignore[method-assign]
        bias.sum(),
        {"mean": bias.mean(), "invalid": 0.5},  # type: ignore[dict-item]
    )
    objective = one.loss(one.augmentation(one.feed.batch()), one.state.progress)
    assert objective.loss.requires_grad
    assert not objective.metrics["mean"].requires_grad
    assert objective.metrics["invalid"] == 0.5  # `checked_metrics` rejects it


@pytest.mark.parametrize("clip", [0.1, 1e9])
def test_gradients_are_clipped_by_their_total_norm(clip: float) -> None:
    one = step(clip)
    before = flat_parameters(one.state.student)
    one()
    moved = before - flat_parameters(one.state.student)
    total = 1000 * len(before) ** 0.5
    assert moved.norm().item() / 0.5 == pytest.approx(min(clip, total), rel=1e-3)


class HeadedAlgorithm(Algorithm):
    """Trains a head of its own, with a gradient a hundred times that of the network."""

    def __init__(self, *, separately: bool) -> None:
        super().__init__()
        self.clips_separately = separately
        self.head = torch.nn.Linear(4, 4)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        own = sum((p.sum() for p in self.head.parameters()), torch.zeros(()))
        network = sum((p.sum() for p in student.parameters()), torch.zeros(()))
        return Objective(100 * own + network, {})


def flat_parameters(module: torch.nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("separately", [False, True])
def test_network_and_heads_can_be_clipped_separately(separately: bool) -> None:
    one = step(0.1, algorithm=HeadedAlgorithm(separately=separately))
    modules = one.state.student, one.state.algorithm
    before = [flat_parameters(each) for each in modules]
    one()
    after = [flat_parameters(each) for each in modules]
    norms = [(old - new).norm().item() / 0.5 for old, new in zip(before, after, strict=True)]
    if separately:
        assert norms == pytest.approx([0.1, 0.1], rel=1e-3)
    else:
        assert sum(norm**2 for norm in norms) ** 0.5 == pytest.approx(0.1, rel=1e-3)
        assert norms[0] < 0.01


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *((name, torch.zeros(()), "a reserved name") for name in RESERVED),
        ("counts", torch.zeros(3), r"a Tensor of shape \(3,\); make it a 0-d tensor"),
        ("pairs", torch.zeros(2, 2), r"a Tensor of shape \(2, 2\)"),
        ("share", 0.5, "a float; make it a 0-d tensor"),
        ("apart", torch.zeros((), device="meta"), "on meta, the loss on cpu"),
    ],
)
def test_rejects_metrics_that_a_log_cannot_hold(name: str, value: Any, words: str) -> None:
    with pytest.raises(UserError, match=f"the metric '{name}' (is|has) {words}"):
        checked_metrics(Objective(torch.zeros(()), {"fine": torch.zeros(2), name: value}))


def test_a_step_reports_its_loss_and_metrics() -> None:
    one = step()
    one()
    assert one.state.totals.names == ["loss", "progress"]
    one.state.algorithm.forward = lambda *_: Objective(  # type: ignore[method-assign]
        one.state.student.head.bias.sum(), {"rate": torch.zeros(())}
    )
    with pytest.raises(UserError, match="'rate'"):
        one()


def test_autocast_only_for_bf16() -> None:
    with autocast(CPU, False):
        assert not torch.is_autocast_enabled("cpu")
    with autocast(CPU, True):
        assert torch.is_autocast_enabled("cpu")


class MeanLoss(Algorithm):
    """The mean logit of the labeled images, so that parts of equal size add up."""

    views = Views(labeled=("plain",), unlabeled=("plain",))

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        loss = student(batch.labeled[0]).logits[:, 0].mean()
        return Objective(loss, {"images": torch.tensor(float(len(batch.labels)))})


def test_accumulated_parts_give_the_gradient_of_the_whole_batch() -> None:
    images = torch.randint(256, (8, 1, 8, 8), dtype=torch.uint8)
    place = torch.arange(4)
    batch = RawBatch(images[:4], place, place, images[4:], place, place)
    weights: list[list[Tensor]] = []
    for parts in (1, 2):
        torch.manual_seed(0)
        made = step(accumulate=parts, algorithm=MeanLoss(), batch=batch)
        made.state.student.eval()  # batch norms would see other batches
        made()
        assert made.state.totals.read()["images"] == 4 / parts
        weights.append(list(made.state.student.parameters()))
    torch.testing.assert_close(weights[0], weights[1])


def test_parts_must_divide_the_batch() -> None:
    with pytest.raises(UserError, match="accumulate = 2 does not divide the 3 unlabeled images"):
        step(accumulate=2)()
