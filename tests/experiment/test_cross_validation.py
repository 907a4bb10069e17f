"""The estimate holds every label out, lets nothing leak, and goes on where it was stopped."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset, TensorStore
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.experiment import cross_validation as folds
from fullmatch.experiment.cross_validation import Estimate, estimate, held_out, part_of
from fullmatch.experiment.inputs import hash_of
from fullmatch.experiment.settings import resolve


def dataset(labels: int, unlabeled: int = 20, classes: int = 3) -> SemiDataset:
    """Digits as somebody's own pictures, with so many labels."""
    source = data.load("digits")
    chosen = (source.labels < classes).nonzero().flatten()[: labels + unlabeled]
    codes = source.labels[chosen].clone()
    codes[labels:] = -1
    own = replace(
        source,
        images=TensorStore(source.images.read(chosen)),
        labels=codes,
        classes=source.classes[:classes],
        test=None,
        test_labels=None,
        benchmark=False,
    )
    return SemiDataset.from_source(own)


def settings(*more: str) -> ExperimentConfig:
    few = ("training.batch=4", "training.ratio=2", "training.steps=10")
    return resolve(assignments=(*few, *more))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "LEAST", 2)


@pytest.mark.parametrize("labels,parts", [(12, 10), (60, 5), (240, 1)])
def test_how_labels_are_held_out(labels: int, parts: int) -> None:
    own = dataset(labels)
    found = held_out(own, compute_digests(own.images), 0)
    assert len(found) == parts
    for part in found:  # even in size and classes, and never all of a class
        assert abs(len(part) - labels / 5) <= 2
        assert torch.bincount(own.labels[part], minlength=3).max() <= labels / 15 + 3
    if parts > 1:
        every = torch.cat(found)
        assert (torch.bincount(every, minlength=labels)[:labels] == parts // 5).all()
    again = held_out(own, compute_digests(own.images), 0)
    assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))


def test_a_single_label_is_never_held_out() -> None:
    own = dataset(30)
    first = {code: own.labels.tolist().index(code) for code in range(3)}
    keep = torch.tensor([at for at in own.labeled.tolist() if own.labels[at] > 0 or at == first[0]])
    found = held_out(replace(own, labeled=keep), compute_digests(own.images), 0)
    assert first[0] not in torch.cat(found).tolist()
    assert held_out(replace(own, labeled=torch.tensor(list(first.values()))), [b""] * 50, 0) == []


def test_nothing_leaks() -> None:
    own = dataset(30)
    pixels = own.images.read(torch.arange(50))
    pixels[40] = pixels[0]  # an unlabeled copy
    twin = own.labels[1:30].tolist().index(int(own.labels[0])) + 1
    pixels[twin] = pixels[0]  # a labeled one
    own = replace(own, images=TensorStore(pixels))
    digests = compute_digests(own.images)
    for held in held_out(own, digests, 0):
        assert (0 in held) == (twin in held)
        part = part_of(own, held, digests)
        assert not set(part.labeled.tolist()) & set(held.tolist())
        assert not set(part.unlabeled.tolist()) & set(held.tolist())
        assert (40 in part.unlabeled) == (0 not in held)
        assert (part.labels[held] == -1).all()
        assert part.test is not None and torch.equal(part.test_labels, own.labels[held])  # type: ignore[arg-type]


def test_estimate(tmp_path: Path) -> None:
    own = dataset(60)
    found = estimate(settings(), own, tmp_path / "folds")
    assert found["held_out"] == 60 and found["parts"] == 5 and found["repeats"] == 1
    assert found["steps"] == 3
    kept = load_file(tmp_path / "folds/held-out.safetensors")
    assert torch.allclose(kept["probabilities"].sum(dim=1), torch.ones(60), atol=1e-5)
    assert torch.equal(kept["labels"], own.labels[kept["index"]])
    right = (kept["probabilities"].argmax(dim=1) == kept["labels"]).double().mean()
    assert found["accuracy"] == pytest.approx(float(right))
    low, high = found["interval"]
    assert low < found["accuracy"] < high and found["not_measured"] == []
    assert "labels alone" in found["sentence"]
    json.dumps(found)


def test_stopped_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, config = dataset(12, classes=2), settings()
    whole = estimate(config, own, tmp_path / "whole")
    for progress in Estimate(config, own, tmp_path / "cut").records():
        if progress.part == 3:
            break
    rest = Estimate(config, own, tmp_path / "cut")
    steps = [(progress.part, progress.alone) for progress in rest.records()]
    assert steps[0] == (3, False) and rest.result == whole
    with monkeypatch.context() as earlier:  # whose hash knew less
        earlier.setattr(folds, "hash_of", lambda data: hash_of(data)[:32])
        estimate(config, own, tmp_path / "older")
    assert list(Estimate(config, own, tmp_path / "older").records()) == []
    changed = Estimate(settings("optimizer.rate=0.01"), own, tmp_path / "cut")
    assert next(iter(changed.records())).part == 0


def test_nothing_to_hold_out(tmp_path: Path) -> None:
    own = dataset(30)
    first = torch.tensor([own.labels.tolist().index(code) for code in range(3)])
    said = estimate(settings(), replace(own, labeled=first), tmp_path / "f")["sentence"]
    assert "none can be held out" in said and "Label more" in said
