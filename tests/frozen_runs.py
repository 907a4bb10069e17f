"""Runs of a few steps on a frozen body that is tiny and random, so they take a second."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.experiment.frozen_model import FrozenModel
from fullmatch.experiment.settings import resolve
from fullmatch.models import Backbone, build_network
from fullmatch.models.frozen import FrozenBody
from fullmatch.models.weights import use_published_normalization

MODEL = "timm:test_resnet"
SIZES = (32, 48)
KNOWN_CLASSES = 7  # of the classifier that the body brings along


def tiny_model(
    name: str = MODEL,
    appearance: Appearance | None = None,
    side: int = 72,
    weights: Path | None = None,
    sizes: tuple[int, ...] = (),
    classes: Sequence[str] = (),
    *,
    classifier: bool = True,
) -> FrozenModel:
    """Takes the place of `load_frozen_model`: the same random weights at every call.

    Its classifier knows classes whose names start with known.
    """
    appearance = appearance or Appearance(mean=(0.5,) * 3, std=(0.25,) * 3, padding=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build_network(name, 2, (3, 64, 64))
        assert isinstance(network, Backbone)
        width = network.head.in_features
        known = nn.Linear(width, KNOWN_CLASSES) if classifier else None
    widths = (width, KNOWN_CLASSES) if classifier else (width,)
    named = None
    if classes and all(each.startswith("known") for each in classes):
        named = torch.eye(KNOWN_CLASSES)[:, : len(classes)]
        widths = (*widths, len(classes))
    return FrozenModel(
        body=FrozenBody(network.body, known, SIZES, named),
        appearance=use_published_normalization(appearance, network),
        widths=widths,
        identity=f"{name} random {SIZES}",
        note="starts from random weights",
    )


@pytest.fixture
def tiny_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run on a frozen body uses the tiny one."""
    for user in ("inputs", "pretrained_plan"):
        monkeypatch.setattr(f"fullmatch.experiment.{user}.load_frozen_model", tiny_model)


def frozen_config(data: Path, algorithm: str = "fullmatch", *settings: str) -> ExperimentConfig:
    return resolve(
        data=str(data),
        algorithm=algorithm,
        assignments=(
            f"model.name={MODEL}",
            "model.body=frozen",
            "data.size=72",
            "training.batch=6",
            "training.ratio=2",
            "training.steps=6",
            "training.log_every=1",
            "training.checkpoint_every=2",
            "optimizer.rate=0.1",
            *settings,
        ),
    )
