"""A method and a network in a file outside of the package, from training to a table."""

import sys
from pathlib import Path

import pytest

from fullmatch.algorithms import algorithm, is_algorithm, name_of
from fullmatch.cli import main
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.models import build_network
from fullmatch.plugins import is_reference, load_object
from fullmatch.storage.run_folder import RunFolder

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from fullmatch.core import Algorithm, Network, Objective, Views
from fullmatch.losses import cross_entropy


class Entropy(Algorithm):
    views = Views(unlabeled=("weak",))

    def forward(self, student, teacher, batch, progress):
        log_p = student(batch.unlabeled[0]).logits.log_softmax(dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1).mean()
        return Objective(
            cross_entropy(student(batch.labeled[0]).logits, batch.labels) + self.weight * entropy,
            {"entropy": entropy},
        )


@dataclass(frozen=True, kw_only=True)
class EntropyMatch:
    ratio: ClassVar[int] = 2
    weight: float = 0.1

    def build(self, task):
        built = Entropy()
        built.weight = self.weight
        return built


class SmallNetwork(Network):
    def __init__(self, num_classes, image):
        super().__init__()
        self.body = nn.Conv2d(image[0], 4, 3)
        self.head = nn.Linear(4, num_classes)

    def feature_map(self, images):
        return self.body(images).relu()

    def classify(self, features):
        return self.head(features)


@dataclass(frozen=True, kw_only=True)
class NeedsWeight(EntropyMatch):
    sharpness: float


def linear(num_classes, image):
    return nn.Linear(2, num_classes)
"""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the user's module."""
    (tmp_path / "own_things.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_things", raising=False)
    return tmp_path


def test_from_training_to_a_table(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["model.name=own_things:SmallNetwork", "algorithm.weight=0.2", "training.batch=8"]
    flags = [word for each in settings for word in ("--set", each)]
    out = ["--steps", "4", "--algorithm", "own_things:EntropyMatch", "--out", "run"]
    main(["train", "digits", "--labels", "40", *out, *flags])
    folder = RunFolder(workplace / "run")
    folder.result.unlink()
    monkeypatch.delitem(sys.modules, "own_things")
    main(["resume", "run"])
    assert folder.read_result().algorithm["weight"] == 0.2
    monkeypatch.delitem(sys.modules, "own_things")
    with pytest.raises(UserError, match="names code that would be run, own_things:SmallNetwork"):
        Classifier.load(folder.model)
    main(["evaluate", "run"])
    capsys.readouterr()
    cells = ["--cells", "digits-40", "--folds", "0", "--steps", "2"]
    places = ["--ledger", "ledger", "--runs", "runs", "--out", "table"]
    main(["reproduce", "table1", "--algorithms", "own_things:EntropyMatch", *cells, *places])
    assert "EntropyMatch" in next((workplace / "table").glob("*.md")).read_text()


def test_names(workplace: Path) -> None:
    spec = algorithm("own_things:EntropyMatch")
    assert name_of(spec) == "own_things:EntropyMatch"
    assert is_algorithm("own_things:EntropyMatch")
    with pytest.raises(UserError, match="has no algorithm 'EntropyMatsh'; did you mean 'EntropyM"):
        algorithm("own_things:EntropyMatsh")
    with pytest.raises(UserError, match="cannot import 'nothing_here' for the algorithm"):
        algorithm("nothing_here:A")
    with pytest.raises(UserError, match=r"fields all have defaults .*'sharpness'"):
        algorithm("own_things:NeedsWeight")
    with pytest.raises(UserError, match=r"has to take num_classes and image .*'num_classes'"):
        build_network("own_things:EntropyMatch", 10, (1, 8, 8))
    with pytest.raises(UserError, match=r"made a Linear; return a core\.Network"):
        build_network("own_things:linear", 10, (1, 8, 8))


def test_an_installed_package_offers_a_method(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = workplace / "own_things-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-things\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[fullmatch.algorithms]\nentropymatch = own_things:EntropyMatch\n"
    )
    monkeypatch.syspath_prepend(workplace)
    spec = algorithm("entropymatch")
    assert type(spec) is load_object("own_things:EntropyMatch", "algorithm")
    assert name_of(spec) == "entropymatch"
    assert is_algorithm("entropymatch")
    main(["list", "algorithms"])
    output = capsys.readouterr().out
    assert "entropymatch" in output
    assert "own_things:EntropyMatch, of an installed package" in output
    with pytest.raises(UserError, match="did you mean 'entropymatch'"):
        algorithm("entropymatsh")


def test_what_is_a_reference() -> None:
    assert is_reference("package.module:Class")
    others = ["sgd", "hf:name", "timm:name", "C:\\data", "shards-{0..9}.tar", "a b:c", ":x", "x:"]
    assert not any(map(is_reference, others))
