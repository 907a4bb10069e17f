"""predictions.safetensors: read without torch, and views of it against counting by hand."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.predictions import Predictions
from fullmatch.storage.run_folder import RunFolder

PROBABILITIES = np.array(
    [[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.0, 0.05, 0.95]],
    np.float32,
)
LABELS = np.array([0, 1, 1, -1, 0])


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    save_file({"probabilities": PROBABILITIES, "labels": LABELS}, tmp_path / "p.safetensors")
    (tmp_path / "p.safetensors").rename(RunFolder(tmp_path).predictions)
    return RunFolder(tmp_path)


def test_read(folder: RunFolder) -> None:
    predictions = folder.read_predictions()
    assert predictions is not None
    assert predictions.predicted.tolist() == [0, 0, 1, 2, 2]
    assert predictions.confidence.dtype == np.float64
    assert predictions.right.tolist() == [True, False, True, False, False]
    assert predictions.wrong.tolist() == [False, True, False, False, True]  # one label is unknown
    folder.predictions.unlink()
    assert folder.read_predictions() is None


def test_order() -> None:
    predictions = Predictions(PROBABILITIES, LABELS)
    assert predictions.most_confident(5) == [4, 0, 2, 1, 3]  # each class once, then again
    assert predictions.least_confident(2) == [3, 2]
    assert predictions.most_confident_mistakes(9) == [4, 1]


def test_reliability() -> None:
    rows = Predictions(PROBABILITIES, LABELS).reliability()
    assert sum(count for _, _, count in rows) == 5
    assert [right for _, right, _ in rows] == [0, 1, 0, 1, 0]
    assert [confidence for confidence, _, _ in rows] == pytest.approx([0.4, 0.7, 0.8, 0.9, 0.95])
    certain = Predictions(np.eye(2), np.array([0, 0]))
    assert certain.reliability() == [(1.0, 0.5, 2)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"labels": LABELS[:4]}, "do not fit each other"),
        ({"probabilities": PROBABILITIES[0]}, "do not fit each other"),
        ({"probabilities": PROBABILITIES * np.float32(np.nan)}, "are not finite numbers"),
        ({"probabilities": PROBABILITIES.astype(np.int64)}, "are not finite numbers"),
        ({"labels": LABELS + 2}, "labels are not classes"),
        ({"labels": LABELS.astype(np.float32)}, "labels are not classes"),
        ({"labels": None}, "labels is missing"),
    ],
)
def test_wrong_values(folder: RunFolder, change: dict[str, np.ndarray], reason: str) -> None:
    tensors = {"probabilities": PROBABILITIES, "labels": LABELS} | change
    save_file(
        {name: each for name, each in tensors.items() if each is not None}, folder.predictions
    )
    with pytest.raises(DamagedFile, match=f"{reason}.*write it again with: fullmatch resume"):
        folder.read_predictions()


@pytest.mark.parametrize("size", [0, 5, 60])
def test_half_a_file(folder: RunFolder, size: int) -> None:
    folder.predictions.write_bytes(folder.predictions.read_bytes()[:size])
    message = r"predictions\.safetensors is damaged \(.+\); write it again"
    with pytest.raises(DamagedFile, match=message):
        folder.read_predictions()
