"""The training loop: when it records, what is in a record, and the caller's random state."""

import torch

from fullmatch.config import OptimizerConfig
from fullmatch.core import Algorithm
from fullmatch.storage.result import Scores
from fullmatch.training.schedule import Schedule
from fullmatch.training.state import TrainState
from fullmatch.training.trainer import Record, Trainer
from tests.networks import TinyNetwork

SCORES = Scores(top1=0.5, ece=0.1, per_class=(0.5,), confusion=((1,),))


class CountingFeed:
    notes = ()

    def __init__(self) -> None:
        self.steps: list[int] = []

    def seek(self, step: int) -> None:
        self.steps.append(step)


def trainer(total: int = 12, *, evaluated: bool = True) -> Trainer:
    state = TrainState(
        TinyNetwork(2),
        Algorithm(),
        optimizer=OptimizerConfig(weight_decay=0.0),
        device=torch.device("cpu"),
    )

    def advance() -> None:
        state.totals.add({"step": torch.tensor(state.rates[0].value()), "random": torch.rand(())})

    return Trainer(
        state,
        CountingFeed(),  # type: ignore[arg-type]
        advance,
        Schedule(steps=total, rate=float, log_every=4, evaluate_every=5, checkpoint_every=6),
        seed=0,
        evaluate=(lambda: {"teacher": SCORES}) if evaluated else None,
    )


def kind(record: Record) -> str:
    words = ["log"] * bool(record.metrics) + ["evaluation"] * bool(record.evaluation)
    return " and ".join(words) or ("paused" if record.paused else "save")


def test_records_follow_the_schedule() -> None:
    records = [(record.step, kind(record)) for record in trainer().run(until=12)]
    assert records == [
        (4, "log"),
        (5, "log and evaluation"),
        (6, "save"),
        (8, "log"),
        (10, "log and evaluation"),
        (12, "log and evaluation"),
    ]
    kinds = [kind(record) for record in trainer(evaluated=False).run(until=12)]
    assert kinds == ["log", "save", "log", "log"]


def test_metrics_are_means_since_the_last_log() -> None:
    """The rate of step t, counted from 0, is t here."""
    records = [r for r in trainer().run(until=12) if r.metrics]
    assert [r.metrics["step"] for r in records] == [1.5, 4.0, 6.0, 8.5, 10.5]
    assert [r.metrics["rate"] for r in records] == [3, 4, 7, 9, 11]


def test_every_step_has_its_number_and_progress() -> None:
    one = trainer()
    for _ in one.run(until=12):
        pass
    assert one.feed.steps == list(range(12))  # type: ignore[attr-defined]
    assert one.state.step == 12
    assert one.state.progress.item() == torch.tensor(11 / 12).item()


def test_stops_on_request() -> None:
    one = trainer()
    records = one.run(until=12)
    next(records)
    one.stop = True
    last = next(records)
    assert last.paused
    assert last.step == 4
    assert not last.metrics
    assert list(records) == []


def test_random_state_of_the_caller_is_restored() -> None:
    records = trainer().run(until=12)
    torch.manual_seed(5)
    expected = torch.rand(6)
    torch.manual_seed(5)
    drawn = [torch.rand(()) for _ in records]
    assert torch.equal(torch.stack(drawn), expected)


def test_networks_are_in_training_mode_after_an_evaluation() -> None:
    one = trainer()
    modes: list[bool] = []
    advance, evaluate = one.advance, one.evaluate
    assert evaluate is not None

    def record_mode() -> None:
        modes.append(one.state.student.training and one.state.teacher.training)
        advance()

    def evaluate_in_eval_mode() -> dict[str, Scores]:
        one.state.student.eval()
        one.state.teacher.eval()
        return evaluate()

    one.advance, one.evaluate = record_mode, evaluate_in_eval_mode
    for _ in one.run(until=12):
        pass
    assert modes == [True] * 12
