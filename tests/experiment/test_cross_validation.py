"""Cross-validation holds out every label, lets nothing leak, and continues when stopped."""

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
from fullmatch.experiment import cross_validation
from fullmatch.experiment.cross_validation import (
    CrossValidation,
    FoldOptions,
    FoldProgress,
    draw_folds,
    fold_steps,
    without_held_out,
)
from fullmatch.experiment.identity import hash_dataset
from fullmatch.experiment.settings import resolve
from fullmatch.storage.json_files import from_json, to_json
from fullmatch.storage.result import Estimate


def dataset(labels: int, unlabeled: int = 20, classes: int = 3) -> SemiDataset:
    """Digits as a user's own pictures, with so many labels."""
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
    small = ("training.batch=4", "training.ratio=2", "training.steps=10")
    return resolve(assignments=(*small, *more))


def validation(config: ExperimentConfig, own: SemiDataset, folder: Path) -> CrossValidation:
    return CrossValidation(config, own, folder, FoldOptions(least_steps=2))


def run(validation: CrossValidation) -> Estimate:
    for _ in validation.run():
        pass
    assert validation.estimate is not None
    return validation.estimate


@pytest.mark.parametrize(
    ("steps", "expected"), [(10, 10), (100, 100), (290, 100), (330, 110), (3000, 1000)]
)
def test_steps_of_a_fold(steps: int, expected: int) -> None:
    assert fold_steps(steps) == expected
    assert fold_steps(steps, least=1) == max(1, steps // 3)


@pytest.mark.parametrize(("labels", "count"), [(12, 10), (60, 5), (240, 1)])
def test_how_labels_are_held_out(labels: int, count: int) -> None:
    own = dataset(labels)
    folds = draw_folds(own, compute_digests(own.images), 0)
    assert len(folds) == count
    for fold in folds:  # of even size and classes, and never all of a class
        assert abs(len(fold) - labels / 5) <= 2
        assert torch.bincount(own.labels[fold], minlength=3).max() <= labels / 15 + 3
    if count > 1:
        times = torch.bincount(torch.cat(folds), minlength=labels)[:labels]
        assert (times == count // 5).all()
    repeated = draw_folds(own, compute_digests(own.images), 0)
    assert all(torch.equal(a, b) for a, b in zip(folds, repeated, strict=True))


def test_the_only_label_of_a_class_is_never_held_out() -> None:
    own = dataset(30)
    first = {code: own.labels.tolist().index(code) for code in range(3)}
    keep = torch.tensor([at for at in own.labeled.tolist() if own.labels[at] > 0 or at == first[0]])
    folds = draw_folds(replace(own, labeled=keep), compute_digests(own.images), 0)
    assert first[0] not in torch.cat(folds).tolist()
    assert draw_folds(replace(own, labeled=torch.tensor(list(first.values()))), [b""] * 50, 0) == []


def test_nothing_leaks() -> None:
    own = dataset(30)
    pixels = own.images.read(torch.arange(50))
    pixels[40] = pixels[0]  # an unlabeled duplicate
    twin = own.labels[1:30].tolist().index(int(own.labels[0])) + 1
    pixels[twin] = pixels[0]  # a labeled one
    own = replace(own, images=TensorStore(pixels))
    digests = compute_digests(own.images)
    for held_out in draw_folds(own, digests, 0):
        assert (0 in held_out) == (twin in held_out)
        rest = without_held_out(own, held_out, digests)
        assert not set(rest.labeled.tolist()) & set(held_out.tolist())
        assert not set(rest.unlabeled.tolist()) & set(held_out.tolist())
        assert (40 in rest.unlabeled) == (0 not in held_out)
        assert (rest.labels[held_out] == -1).all()
        assert rest.test is not None
        assert rest.test_labels is not None
        assert torch.equal(rest.test.read(torch.arange(len(held_out))), pixels[held_out])
        assert torch.equal(rest.test_labels, own.labels[held_out])


def test_estimate(tmp_path: Path) -> None:
    own = dataset(60)
    estimate = run(validation(settings(), own, tmp_path / "folds"))
    assert (estimate.held_out, estimate.labels, estimate.unlabeled) == (60, 60, 80)
    assert (estimate.folds, estimate.repeats, estimate.steps) == (5, 1, 3)
    assert not estimate.without_start
    saved = load_file(tmp_path / "folds/held-out.safetensors")
    assert torch.allclose(saved["probabilities"].sum(dim=1), torch.ones(60), atol=1e-5)
    assert torch.equal(saved["labels"], own.labels[saved["index"]])
    right = (saved["probabilities"].argmax(dim=1) == saved["labels"]).double()
    assert estimate.accuracy == pytest.approx(float(right.mean()))
    for code, name in enumerate(own.classes):
        expected = float(right[saved["labels"] == code].mean())
        assert estimate.per_class[name] == pytest.approx(expected)
    low, high = estimate.interval
    assert low < estimate.accuracy < high
    assert estimate.not_measured == []
    assert estimate.gain.gain == pytest.approx(estimate.accuracy - estimate.baseline.accuracy)
    assert from_json(Estimate, json.loads(json.dumps(to_json(estimate)))) == estimate


def test_progress(tmp_path: Path) -> None:
    done = [progress.done for progress in validation(settings(), dataset(60), tmp_path).run()]
    assert done == sorted(done)
    assert 0 < done[0] < 0.2
    assert done[-1] == 1
    assert FoldProgress(fold=1, folds=4, baseline=True, step=5, steps=10).done == (1 + 0.75) / 4


def test_stopped_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, config = dataset(12, classes=2), settings()
    whole = run(validation(config, own, tmp_path / "whole"))
    for progress in validation(config, own, tmp_path / "cut").run():
        if progress.fold == 3:
            break
    continued = validation(config, own, tmp_path / "cut")
    steps = [(progress.fold, progress.baseline) for progress in continued.run()]
    assert steps[0] == (3, False)
    assert continued.estimate == whole
    changed = validation(settings("optimizer.rate=0.01"), own, tmp_path / "cut")
    assert next(iter(changed.run())).fold == 0


def test_folds_of_earlier_versions_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hashed less of the data, and called the baseline labels-only."""
    own, config = dataset(12, classes=2), settings()
    with monkeypatch.context() as earlier:
        earlier.setattr(cross_validation, "hash_dataset", lambda data: hash_dataset(data)[:32])
        whole = run(validation(config, own, tmp_path))
    for path in tmp_path.glob("*-baseline.safetensors"):
        path.rename(path.with_name(path.name.replace("baseline", "labels-only")))
    assert len(list(tmp_path.glob("*-labels-only.safetensors"))) == 10
    continued = validation(config, own, tmp_path)
    assert list(continued.run()) == []
    assert continued.estimate == whole


def test_damaged_folds_are_trained_again(tmp_path: Path) -> None:
    own, config = dataset(12, classes=2), settings()
    whole = run(validation(config, own, tmp_path))
    (tmp_path / "4-all.safetensors").write_bytes(b"damaged")
    continued = validation(config, own, tmp_path)
    assert {(at.fold, at.baseline) for at in continued.run()} == {(4, False)}
    assert continued.estimate == whole


def test_nothing_to_hold_out(tmp_path: Path) -> None:
    own = dataset(30)
    first = torch.tensor([own.labels.tolist().index(code) for code in range(3)])
    empty = validation(settings(), replace(own, labeled=first), tmp_path / "folds")
    assert list(empty.run()) == []
    assert empty.estimate is None
