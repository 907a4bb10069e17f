"""The settings of the run behind an estimator."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.estimator.run import TrainingOptions, make_config, name_frozen_model
from fullmatch.estimator.sources import source_of_features, source_of_files
from fullmatch.experiment.given_features import GIVEN
from fullmatch.experiment.plan_types import PlanOptions
from fullmatch.experiment.planning import make_plan
from tests.small_pictures import write_pictures

DEFAULTS: dict[str, Any] = {
    "algorithm": "fullmatch",
    "model": None,
    "weights": None,
    "frozen": True,
    "steps": None,
    "batch": None,
    "settings": (),
    "seed": 0,
}


def photos(folder: Path) -> Source:
    """Six labeled photos of two classes, read for a frozen body."""
    for name in ("cat", "dog"):
        write_pictures(folder / name, 3, side=300)
    files = sorted(map(str, folder.glob("*/*.png")))
    codes = np.array([0, 0, 0, 1, 1, 1])
    return source_of_files(files, codes, ("cat", "dog"), image_size=None, flip=True, frozen=True)


def rows() -> Source:
    return source_of_features(np.eye(6), np.array([0, 0, 1, 1, -1, -1]), ("a", "b"))


def test_settings_are_those_of_a_plan(tmp_path: Path) -> None:
    """Picture size, network, steps, batch and head are those of `fullmatch train`."""
    source = photos(tmp_path)
    ours = make_config(source, TrainingOptions(**DEFAULTS))
    plan = make_plan(source, "pictures", PlanOptions(minutes=1000))
    assert source.images.shape[1:] == (plan.config.data.size,) * 2
    # Pictures are resized when they are read, and all sizes of a body are its default.
    expected = replace(
        plan.config,
        data=replace(plan.config.data, size=None, flip=True),
        model=replace(plan.config.model, sizes=()),
    )
    assert ours == expected


def test_what_the_user_decides_comes_last() -> None:
    changes = {"steps": np.int64(7), "batch": 2, "settings": "optimizer.rate=0.5", "seed": 3}
    config = make_config(rows(), TrainingOptions(**DEFAULTS | changes))
    assert (config.training.steps, config.training.batch) == (7, 2)
    assert (config.optimizer.rate, config.seed) == (0.5, 3)
    assert (config.model.name, config.model.body) == (GIVEN, "frozen")


def test_which_network_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = photos(tmp_path)
    assert name_frozen_model(rows(), None) == GIVEN
    assert name_frozen_model(source, "resnet18") == "resnet18"
    assert name_frozen_model(source, "pretrained") == name_frozen_model(source, None)
    monkeypatch.setattr("fullmatch.estimator.run.preferred_weights", lambda device: None)
    with pytest.raises(UserError, match="no pretrained weights on this machine; install some"):
        name_frozen_model(source, "pretrained")
