"""Files that only save time: damaged ones are computed again, or refused in one line."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.data import TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment.feature_pass import FeaturePass, read_descriptors
from fullmatch.inference.suggestion import Judgment, check_width
from fullmatch.inference.trained_run import TrainedRun
from tests.frozen_runs import tiny_model
from tests.trained_runs import train_pets

PICTURES = TensorStore(torch.arange(12 * 3 * 8 * 8).view(12, 3, 8, 8).to(torch.uint8))


def write_nan(path: Path) -> None:
    rows = np.load(path)
    rows[3, 0, 0] = np.nan
    np.save(path, rows)


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def nest_note(path: Path) -> None:
    path.with_suffix(".json").write_text("[" * 100_000)


def infinite_note(path: Path) -> None:
    path.with_suffix(".json").write_text('{"done": Infinity}')


@pytest.mark.parametrize("damage", [write_nan, nest_note, infinite_note])
def test_damaged_features_are_computed_again(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    model, device = tiny_model(), torch.device("cpu")

    def describe() -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]]":
        rows = FeaturePass(model, tmp_path, device).describe(PICTURES, 0, 0, lambda *_: None)
        return np.array(rows)

    expected = describe()
    (path,) = tmp_path.glob("*.npy")
    damage(path)
    assert read_descriptors(tmp_path, model.identity, PICTURES, 0, 0) is None
    assert np.array_equal(describe(), expected)


def test_features_of_another_width_are_refused() -> None:
    run = TrainedRun(train_pets())
    stored, computed = (
        Judgment(["a"], torch.ones(1, 2) / 2, torch.ones(1, width)) for width in (3, 4)
    )
    check_width(run, stored, stored)
    with pytest.raises(UserError, match="features of 3 numbers, the model computes 4"):
        check_width(run, stored, computed)
