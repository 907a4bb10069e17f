"""A round of UPS: what it learns, and from which file."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from fullmatch.algorithms import UPSOffline
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice
from fullmatch.errors import UserError
from fullmatch.losses import negative_learning
from tests.networks import TinyNetwork, random_batch, tiny_task

TASK = tiny_task(num_classes=4, num_labeled=8, num_unlabeled=12)


def choice() -> PseudoLabelChoice:
    positive = torch.arange(12) % 3 == 0
    negative = (torch.rand(12, 4) < 0.5) & ~positive[:, None]
    return PseudoLabelChoice(torch.randint(4, (12,)), positive, negative)


def saved(choice: PseudoLabelChoice, folder: Path) -> str:
    save_file(choice._asdict(), folder / "choice.safetensors")
    return str(folder / "choice.safetensors")


def test_labels_and_pseudo_labels_have_equal_weight(tmp_path: Path) -> None:
    torch.manual_seed(0)
    chosen = choice()
    algorithm = UPSOffline(choice=saved(chosen, tmp_path), dropout=0.0).build(TASK)
    student = TinyNetwork(4)
    batch = random_batch(TASK, algorithm.views)
    actual = algorithm(student, student, batch, torch.tensor(0.5))
    logits = student(torch.cat([batch.labeled[0], batch.unlabeled[0]])).logits
    labeled, unlabeled = logits[: len(batch.labels)], logits[len(batch.labels) :]
    index = batch.unlabeled_index
    selected = chosen.positive[index]
    targets = torch.cat([batch.labels, chosen.label[index][selected]])
    expected = F.cross_entropy(torch.cat([labeled, unlabeled[selected]]), targets)
    expected = expected + negative_learning(unlabeled, chosen.negative[index])
    torch.testing.assert_close(actual.loss, expected)
    assert actual.metrics["selected"] == selected.float().mean()


def test_first_round_uses_only_the_labels() -> None:
    torch.manual_seed(0)
    algorithm = UPSOffline(dropout=0.0).build(TASK)
    student = TinyNetwork(4)
    batch = random_batch(TASK, algorithm.views)
    actual = algorithm(student, student, batch, torch.tensor(0.5))
    assert actual.loss == actual.metrics["supervised"]
    assert actual.metrics["unlikely_negative"] == 0


def test_bad_choices(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing or was not written"):
        UPSOffline(choice=str(tmp_path / "none")).build(TASK)
    save_file({"other": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="missing or was not written"):
        UPSOffline(choice=str(tmp_path / "foreign")).build(TASK)
    few = PseudoLabelChoice(*(part[:5] for part in choice()))
    with pytest.raises(UserError, match="run the rounds on this data"):
        UPSOffline(choice=saved(few, tmp_path)).build(TASK)
