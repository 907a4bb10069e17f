"""Figures show the numbers of the runs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch.losses import adaptive_k
from fullmatch.reproduce.entry import LedgerCurve
from fullmatch.reproduce.figures import bars
from fullmatch.reproduce.figures.curves import smooth
from fullmatch.reproduce.figures.features import compute_features
from fullmatch.reproduce.figures.groups import RunGroup, group_seeds, join_curves
from fullmatch.reproduce.figures.overview import BatchRoles, choose_examples, compute_roles
from fullmatch.reproduce.figures.runs import FigureRun


def test_smooth() -> None:
    short = LedgerCurve((1, 2, 3), (1.0, 2.0, 4.0))
    assert smooth(short) == short
    curve = smooth(LedgerCurve(tuple(range(120)), tuple(float(i % 2) for i in range(120))))
    assert len(curve.steps) == 60
    assert curve.steps[-1] == 119
    assert set(curve.values) == {0.5}


def test_shares_of_low_entropy(runs: dict[str, Path]) -> None:
    run = FigureRun(runs["fixmatch"])
    probs = run.predictions()[0]
    entropy = -(probs * probs.log()).sum(dim=1)
    axes = bars.entropy([run]).axes[0]
    shown = axes.get_legend_handles_labels()[1][0]
    assert shown == f"FixMatch: {100 * float((entropy < 0.25).double().mean()):.1f} % below 0.25"
    heights = sum(bar.get_height() for bar in axes.patches)  # type: ignore[attr-defined]
    assert heights == pytest.approx(100)


def test_curves_of_seeds_are_joined() -> None:
    band = join_curves([LedgerCurve((1, 2, 4), (0.0, 1.0, 3.0)), LedgerCurve((1, 3), (2.0, 4.0))])
    assert band.steps == (1, 3)
    assert band.mean == pytest.approx((1.0, 3.0))
    assert band.deviation == pytest.approx((1.0, 1.0))
    later = LedgerCurve((3, 4, 5), (0.0, 0.0, 0.0))  # negatives may begin later than others
    assert join_curves([LedgerCurve((1, 2, 3), (1.0, 1.0, 1.0)), later]).steps == (3,)


def test_only_runs_that_differ_in_their_seed_are_joined(runs: dict[str, Path]) -> None:
    first, second, other = (FigureRun(runs[name]) for name in ("fixmatch", "fixmatch", "eml"))
    assert [len(group.runs) for group in group_seeds([first, second, other])] == [1, 1, 1]
    second.config = replace(second.config, seed=1)
    groups = group_seeds([first, other, second])
    assert [len(group.runs) for group in groups] == [2, 1]
    assert [group.label for group in groups] == ["FixMatch, 2 seeds", "FixMatch + EML"]
    second.config = replace(second.config, training=replace(second.config.training, steps=9))
    assert [len(group.runs) for group in group_seeds([first, second])] == [1, 1]


def test_time_of_a_step(runs: dict[str, Path]) -> None:
    run = FigureRun(runs["fixmatch"])
    run.__dict__["curves"] = {
        "seconds": LedgerCurve((10, 20, 30, 40), (100.0, 100.1, 100.2, 100.3))
    }
    assert bars.step_time_quartiles(RunGroup((run,))) == pytest.approx((10, 10, 10))


def test_roles_of_a_batch(runs: dict[str, Path]) -> None:
    run = FigureRun(runs["fullmatch"])
    images = run.source().images.read(torch.arange(32))
    roles = compute_roles(run.classifier(), images, threshold=0.12)
    assert roles.weak.shape == roles.strong.shape == (32, 1, 8, 8)
    assert 2 <= roles.k <= 10
    assert (roles.negative.sum(dim=1) <= 10 - roles.k).all()
    assert (roles.selected == (roles.probs.amax(dim=1) >= 0.12)).all()


def test_roles_and_examples() -> None:
    probs = torch.tensor([[0.97, 0.02, 0.01], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    views = torch.zeros(3, 1, 2, 2)
    negative = torch.tensor([[False, False, True]] * 3)
    roles = BatchRoles(views, views, probs, negative, torch.tensor([True, False, False]), 2)
    assert [roles.role(0, label) for label in range(3)] == [
        "pseudo-label",
        "non-target",
        "negative",
    ]
    assert [roles.role(1, label) for label in range(3)] == ["undecided", "undecided", "negative"]
    assert choose_examples(roles) == [0, 1, 2]
    assert adaptive_k(probs, probs) == 2


def test_features_come_from_the_network(runs: dict[str, Path]) -> None:
    run = FigureRun(runs["eml"])
    classifier = run.classifier()
    images = run.source().images.read(torch.arange(150))
    features, probs = compute_features(classifier, images)
    with torch.no_grad():
        assert torch.allclose(probs, classifier(images), atol=1e-5)
        logits = classifier.network.classify(features)
        assert torch.allclose(logits.softmax(dim=1), probs, atol=1e-5)
