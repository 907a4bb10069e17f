"""SemCo against loops over groups, and errors for unusable files."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.algorithms import SemCo
from fullmatch.algorithms.semco import SemanticLoss, group_classes, read_embeddings
from fullmatch.errors import UserError
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import semco as reference

TASK = tiny_task(8)


def paired(width: int = 6) -> np.ndarray:
    """Eight classes; the last two have similar embeddings."""
    rows = np.random.default_rng(3).normal(size=(8, width))
    rows[7] = rows[6] + 0.1
    return rows


def test_agrees_with_the_reference(tmp_path: Path) -> None:
    torch.manual_seed(0)
    np.save(tmp_path / "rows.npy", paired())
    spec = SemCo(embeddings=str(tmp_path / "rows.npy"), threshold=0.3, group_threshold=0.81)
    algorithm, network = spec.build(TASK), confident_network(8)
    group = group_classes(torch.tensor(paired())).tolist()
    assert group[6] == group[7]
    for _ in range(3):
        batch = random_batch(TASK, algorithm.views, unlabeled=12)
        expected = reference.loss(network, algorithm.head, batch, spec, paired(), group)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert 0 < actual.metrics["selected"] < 1
        assert 0 < actual.metrics["near_group"] < 1
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_label_is_from_the_nearest_group() -> None:
    rows = torch.tensor(paired()).float()
    semantic = SemanticLoss(rows, group_classes(rows), SemCo())
    embedding, label, weight = semantic.label_by_group(rows[[6, 0]])
    assert label.tolist() == [6, 0]
    assert weight.tolist() == [1, 1]
    torch.testing.assert_close(embedding[1], rows[0])
    assert not torch.allclose(embedding[0], rows[6])  # a mean over its group of two


@pytest.mark.parametrize(("width", "reach"), [(99, 0.15), (100, 0.2), (255, 0.2), (256, 0.28)])
def test_cluster_distance_depends_on_the_width(width: int, reach: float) -> None:
    """Two classes just within the distance share a group; just outside they do not."""
    for distance, together in ((reach - 0.01, True), (reach + 0.01, False)):
        rows = torch.eye(8, width)
        rows[7] = (1 - distance) * rows[6] + (1 - (1 - distance) ** 2) ** 0.5 * torch.eye(9, width)[
            8
        ]
        group = group_classes(rows)
        assert (group[6] == group[7]).item() is together


def test_five_groups_or_fewer_mean_no_groups() -> None:
    rows = torch.eye(8)
    rows[4:] = rows[4]  # five groups
    assert group_classes(rows).tolist() == list(range(8))


def test_reads_every_format(tmp_path: Path) -> None:
    rows = paired().astype(np.float32)
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", rows=rows)
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",")
    np.savetxt(tmp_path / "a.txt", rows)
    for name in ("a.npy", "a.npz", "a.csv", "a.txt"):
        actual = read_embeddings(str(tmp_path / name), 8)
        torch.testing.assert_close(actual, torch.tensor(rows))


def test_errors_say_what_to_supply(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="8 rows"):
        SemCo().build(TASK)
    with pytest.raises(UserError, match="cannot read"):
        SemCo(embeddings=str(tmp_path / "none.npy")).build(TASK)
    (tmp_path / "words.txt").write_text("cat dog\n")
    with pytest.raises(UserError, match="cannot read"):
        SemCo(embeddings=str(tmp_path / "words.txt")).build(TASK)
    np.save(tmp_path / "few.npy", paired()[:5])
    with pytest.raises(UserError, match="8 classes"):
        SemCo(embeddings=str(tmp_path / "few.npy")).build(TASK)
