"""What methods were published with for single data sets, value by value."""

from dataclasses import fields
from typing import Any

import pytest

from fullmatch.algorithms import ALGORITHMS, FixMatch, name_of
from fullmatch.config import OptimizerConfig, TrainingConfig, config_table
from fullmatch.data import DATASETS
from fullmatch.experiment import presets
from fullmatch.experiment.published_settings import PUBLISHED, PublishedSetting
from fullmatch.experiment.settings import resolve
from fullmatch.reproduce.grid import TABLES, TableCell, config_for, find_row


def setting(config: Any, name: str) -> Any:
    section, field = name.split(".")
    return config_table(config, name_of)[section][field]


@pytest.mark.parametrize(
    ("algorithm", "data", "labels", "expected"),
    [
        ("doublematch", "cifar10", 40, {"algorithm.features": 0.5, "optimizer.cosine": 7 / 16}),
        ("doublematch", "cifar10", 250, {"algorithm.features": 1.0}),
        ("doublematch", "cifar10", 4000, {"algorithm.features": 5.0}),
        ("doublematch", "cifar100", 400, {"algorithm.features": 2.0, "optimizer.cosine": 5 / 16}),
        ("doublematch", "cifar100", 2500, {"algorithm.features": 5.0, "optimizer.cosine": 5 / 16}),
        ("doublematch", "cifar100", 10000, {"algorithm.features": 10.0}),
        ("doublematch", "svhn", 40, {"algorithm.features": 0.001}),
        ("doublematch", "svhn-noextra", 1000, {"algorithm.features": 0.05}),
        ("doublematch", "stl10", 1000, {"algorithm.features": 1.0}),
        ("full-doublematch", "cifar10", 4000, {"algorithm.features": 5.0}),
        (
            "npmatch",
            "imagenet",
            100_000,
            {
                "algorithm.threshold": 0.7,
                "algorithm.uncertainty": 1.2,
                "algorithm.latent": 0.125,
                "training.batch": 256,
                "training.ratio": 1,
                "optimizer.rate": 0.05,
                "optimizer.weight_decay": 1e-4,
                "optimizer.clip": 3.0,
            },
        ),
        ("npmatch", "cifar10", 40, {"algorithm.threshold": 0.95, "optimizer.rate": 0.03}),
        ("alphamatch", "cifar100", 400, {"algorithm.align": True}),
        ("alphamatch", "cifar10", 40, {"algorithm.align": False}),
        ("freematch", "svhn", 40, {"algorithm.floor": 0.9, "algorithm.threshold": 0.95}),
        ("freematch", "cifar10", 40, {"algorithm.floor": 0.0, "algorithm.threshold": 1.0}),
        ("comatch", "stl10", 1000, {"algorithm.contrast": 5.0}),
        ("comatch", "cifar10", 40, {"algorithm.contrast": 1.0}),
        ("iomatch", "cifar10", 24, {"algorithm.align": False}),
        ("full-iomatch", "cifar100", 200, {"algorithm.align": True}),
        ("ups_offline", "cifar100", 10000, {"algorithm.balanced_rounds": 0}),
        ("ups_offline", "cifar10", 4000, {"algorithm.balanced_rounds": 6}),
        ("fixmatch", "svhn", 40, {"algorithm.threshold": 0.95, "optimizer.cosine": 7 / 16}),
    ],
)
def test_values(algorithm: str, data: str, labels: int, expected: dict[str, Any]) -> None:
    config = presets.paper(data, labels, algorithm)
    assert {name: setting(config, name) for name in expected} == expected


def test_reproduced_tables_use_them() -> None:
    for method, cell, field, value in (
        ("doublematch", TableCell("cifar10", 40), "features", 0.5),
        ("alphamatch", TableCell("cifar100", 400), "align", True),
    ):
        config = config_for(find_row(TABLES[1], method), cell, fold=1)
        assert getattr(config.algorithm, field) == value
        assert config.seed == 1
    ablation = find_row(TABLES[3], "FixMatch+EML(CE)")
    full = config_for(ablation, TableCell("cifar100", 400), fold=0).algorithm.full
    assert (full.adaptive_negative, full.form) == (False, "ce")


def test_users_can_override_them() -> None:
    config = resolve(
        data="cifar10",
        labels=40,
        algorithm="doublematch",
        assignments=["algorithm.features=0.25"],
    )
    assert config.algorithm.features == 0.25
    assert resolve(data="cifar10", labels=40, algorithm="doublematch").algorithm.features == 0.5


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: f"{each.algorithm} {each.name}")
def test_every_row_names_real_things_and_its_source(published: PublishedSetting) -> None:
    sections = {"optimizer": OptimizerConfig, "training": TrainingConfig}
    owner: Any = sections.get(published.section, ALGORITHMS[published.algorithm])
    names = {field.name for field in fields(owner)}
    assert published.field in names
    assert set(published.data) <= set(DATASETS)
    assert len(published.source.split()) >= 2


def test_no_value_is_given_twice() -> None:
    keys = [(row.algorithm, data, row.labels, row.name) for row in PUBLISHED for data in row.data]
    assert len(set(keys)) == len(keys)
    assert FixMatch() == presets.paper("cifar10", 250, "fixmatch").algorithm
