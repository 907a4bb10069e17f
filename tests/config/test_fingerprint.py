"""A setting that is added later, with its default, leaves every old run as it is."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch.algorithms import FixMatch, full, name_of
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    TrainingConfig,
    experiment_config,
    fingerprint,
    identifying_table,
)
from fullmatch.reproduce.provenance import identity

RECORDED = Path(__file__).parents[1] / "fixtures" / "fingerprints-0.2.json"


@dataclass(frozen=True, kw_only=True)
class LaterTraining(TrainingConfig):
    """The section in a version that has one more setting."""

    patience: int = 10


@dataclass(frozen=True, kw_only=True)
class LaterFixMatch(FixMatch):
    """A spec in a version that has one more field."""

    margin: float = 0.0


def hash_of(config: ExperimentConfig) -> str:
    return fingerprint(identifying_table(config, lambda spec: "fixmatch"))


def config(**parts: Any) -> ExperimentConfig:
    return ExperimentConfig(**{"algorithm": FixMatch(), **parts})


def test_an_added_setting_counts_once_it_is_changed() -> None:
    assert hash_of(config(training=LaterTraining())) == hash_of(config())
    assert hash_of(config(training=LaterTraining(patience=3))) != hash_of(config())


def test_an_added_field_of_a_method_counts_once_it_is_changed() -> None:
    assert hash_of(config(algorithm=LaterFixMatch())) == hash_of(config())
    assert hash_of(config(algorithm=LaterFixMatch(margin=0.1))) != hash_of(config())
    assert hash_of(config(algorithm=full(LaterFixMatch()))) == hash_of(
        config(algorithm=full(FixMatch()))
    )


def test_it_changes_with_every_setting() -> None:
    configs = [
        config(),
        config(seed=1),
        config(data=DataConfig(labels=4)),
        config(model=ModelConfig(body="frozen")),
        config(model=ModelConfig(body="frozen", head="logistic")),
        config(training=TrainingConfig(steps=3)),
        config(training=TrainingConfig(accumulate=2)),
        config(algorithm=full(FixMatch())),
        config(algorithm=FixMatch(threshold=0.9500001)),
    ]
    assert len({hash_of(each) for each in configs}) == len(configs)


@pytest.mark.parametrize("kind", ["fingerprint", "identity"])
def test_hashes_of_an_earlier_version_are_repeated(kind: str) -> None:
    """Every method, for runs and for the ledger, as the version before this module wrote them."""
    recorded = json.loads(RECORDED.read_text())
    assert len(recorded) > 60
    for entry in recorded:
        table = entry["config"]
        config = experiment_config(table, spec_of)
        hashes = {
            "fingerprint": fingerprint(identifying_table(config, name_of)),
            "identity": identity(table),
        }
        assert hashes[kind] == entry[kind], table["algorithm"]
        other = replace(config, seed=config.seed + 1)
        assert fingerprint(identifying_table(other, name_of)) != entry["fingerprint"]
