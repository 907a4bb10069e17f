"""A round of UPS: what it learns, and from which file."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from fullmatch.algorithms import UPSOffline
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice
from fullmatch.core import DrawnSets, Views
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


def test_labels_and_negatives_of_one_step(tmp_path: Path) -> None:
    torch.manual_seed(0)
    chosen = choice()
    algorithm = UPSOffline(choice=saved(chosen, tmp_path), dropout=0.0).build(TASK)
    assert algorithm.views == Views(labeled=("strong",), unlabeled=("strong",))
    student = TinyNetwork(4)
    batch = random_batch(TASK, algorithm.views, unlabeled=4)
    batch = batch._replace(unlabeled_index=torch.tensor([3, 0, 1, 2]))  # of those with negatives
    actual = algorithm(student, student, batch, torch.tensor(0.5))
    logits = student(torch.cat([batch.labeled[0], batch.unlabeled[0]])).logits
    labeled, unlabeled = logits[: len(batch.labels)], logits[len(batch.labels) :]
    negative = chosen.negative[chosen.has_negatives][batch.unlabeled_index]
    expected = F.cross_entropy(labeled, batch.labels) + negative_learning(unlabeled, negative)
    torch.testing.assert_close(actual.loss, expected)
    assert actual.metrics["selected"] == pytest.approx(4 / 12)


def sets() -> DrawnSets:
    """Eight labeled images at 100 to 107, and twelve unlabeled ones at 0 to 11."""
    labels = torch.arange(8) % 4
    return DrawnSets(100 + torch.arange(8), labels, torch.arange(12), 64, 64)


def test_labels_and_pseudo_labels_are_drawn_from_one_set(tmp_path: Path) -> None:
    torch.manual_seed(0)
    chosen = choice()
    drawn = UPSOffline(choice=saved(chosen, tmp_path)).arrange(sets())
    positive, others = chosen.positive.nonzero().flatten(), chosen.has_negatives
    assert drawn.labeled.tolist() == [*range(100, 108), *positive.tolist()]
    assert drawn.labels.tolist() == [*sets().labels.tolist(), *chosen.label[positive].tolist()]
    assert drawn.unlabeled.tolist() == others.nonzero().flatten().tolist()
    assert len(set(drawn.unlabeled.tolist()) & set(positive.tolist())) == 0


@pytest.mark.parametrize(
    ("positives", "negatives", "expected"),
    [
        (2, 10, (64, 64)),  # ten and ten: equally many of both
        (2, 5, (86, 42)),  # ten and five: two thirds
        (0, 12, (64, 64)),  # eight and twelve: the labels are repeated to twelve
        (12, 0, (128, 64)),  # no images to rule out classes of: a whole batch of labels
    ],
)
def test_a_step_has_images_in_proportion_to_the_sets(
    positives: int, negatives: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    positive = torch.arange(12) < positives
    negative = (torch.arange(12) >= 12 - negatives)[:, None].repeat(1, 4)
    chosen = PseudoLabelChoice(torch.zeros(12, dtype=torch.int64), positive, negative)
    drawn = UPSOffline(choice=saved(chosen, tmp_path)).arrange(sets())
    assert (drawn.labeled_batch, drawn.unlabeled_batch) == expected


def test_first_round_uses_only_the_labels() -> None:
    torch.manual_seed(0)
    algorithm = UPSOffline(dropout=0.0).build(TASK)
    given = sets()
    assert UPSOffline().arrange(given) is given
    student, other = TinyNetwork(4), TinyNetwork(4)
    other.load_state_dict(student.state_dict())
    batch = random_batch(TASK, algorithm.views)
    actual = algorithm(student, student, batch, torch.tensor(0.5))
    torch.testing.assert_close(
        actual.loss, F.cross_entropy(other(batch.labeled[0]).logits, batch.labels)
    )
    torch.testing.assert_close(student.state_dict(), other.state_dict())
    assert actual.loss == actual.metrics["supervised"]
    assert actual.metrics["unlikely_negative"] == 0
    assert actual.metrics["selected"] == 0


def test_bad_choices(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing or was not written"):
        UPSOffline(choice=str(tmp_path / "none")).build(TASK)
    save_file({"other": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="missing or was not written"):
        UPSOffline(choice=str(tmp_path / "foreign")).build(TASK)
    few = PseudoLabelChoice(*(part[:5] for part in choice()))
    with pytest.raises(UserError, match="run the rounds on this data"):
        UPSOffline(choice=saved(few, tmp_path)).build(TASK)
