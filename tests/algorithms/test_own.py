"""A user's own method: what its spec needs, and errors if something is missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch import Tensor

from fullmatch.algorithms import ALGORITHMS, algorithm, name_of
from fullmatch.cli.commands.listing import list_algorithms
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.losses import cross_entropy
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import clean_folder
from tests.small_runs import finish


class EntropyLoss(Algorithm):
    """Entropy of one strong view, in addition to the labels."""

    views = Views(unlabeled=("strong",))

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        supervised = cross_entropy(student(batch.labeled[0]).logits, batch.labels)
        log_p = student(batch.unlabeled[0]).logits.float().log_softmax(dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1).mean()
        return Objective(supervised + entropy, {"entropy": entropy})


@dataclass(frozen=True, kw_only=True)
class MinimalSpec:
    """The minimum, without the base class `core.Spec`."""

    ratio: ClassVar[int] = 2

    def build(self, task: Task) -> EntropyLoss:
        return EntropyLoss()


def test_ratio_and_build_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ALGORITHMS, "minimal", MinimalSpec)
    small = ("training.steps=2", "training.batch=3", "data.size=16", "model.name=wrn-10-1")
    pictures = str(clean_folder(tmp_path / "pictures", labels=2, unlabeled=4))
    config = resolve(data=pictures, algorithm="minimal", assignments=small)
    run = finish(start(config, RunFolder(tmp_path / "run", new=True)))
    assert "entropy" in run.folder.read_records()[-1].metrics
    list_algorithms()
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("minimal"))
    assert set(line.split()[1:]) == {"-"}


def test_a_method_that_a_config_cannot_name() -> None:
    assert name_of(MinimalSpec()) == f"{__name__}:MinimalSpec"

    class Local(MinimalSpec):
        """Inside of a function, where no name leads to it."""

    with pytest.raises(UserError, match=r"Local cannot be imported by a name"):
        name_of(Local())


WITHOUT_RATIO: Any = dataclass(frozen=True)(type("NoRatio", (), {"build": MinimalSpec.build}))
NOT_A_DATACLASS = type("NoDataclass", (), {"build": MinimalSpec.build, "ratio": 1})


@pytest.mark.parametrize("incomplete", [WITHOUT_RATIO, NOT_A_DATACLASS])
def test_a_spec_that_lacks_something(incomplete: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "incomplete", incomplete)
    with pytest.raises(
        UserError, match=f"{incomplete.__name__} is named .* has `ratio` and `build`"
    ):
        algorithm("incomplete")
