"""Features that the user has computed: a run trains a head on them, and its model reads them."""

from pathlib import Path

import pytest
import torch

from fullmatch.data import Source
from fullmatch.data.stores.features import FeatureStore
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.given_features import (
    GIVEN,
    embed_given,
    feature_source,
    fit_given_model,
)
from fullmatch.experiment.pretrained_plan import frozen_config
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import Chooser, resume, start
from fullmatch.experiment.strategies import StrategyChooser
from fullmatch.storage.run_folder import RunFolder


def blobs(per_class: int = 30, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of three classes, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.tensor([[4.0, 0, 0, 0], [0, 4.0, 0, 0], [-3.0, -3.0, 0, 0]])
    labels = torch.arange(3).repeat(per_class)
    return centers[labels] + torch.randn(len(labels), 4, generator=generator), labels


def source(labeled: int = 12) -> Source:
    rows, labels = blobs()
    few = torch.where(torch.arange(len(labels)) < labeled, labels, -1)
    return feature_source(FeatureStore(rows), few, ("a", "b", "c"))


def started(folder: Path, data: Source, choose: Chooser | None = None) -> Run:
    config = frozen_config(data, GIVEN, "fullmatch", GIVEN)
    return start(config, RunFolder(folder, new=True), data, choose=choose)


def finished(run: Run) -> Run:
    for _ in run.records():
        pass
    return run


@pytest.mark.parametrize("count", [5, 60, 700])
def test_embeddings_of_few_and_many_rows(count: int) -> None:
    rows = torch.randn(count, 8, generator=torch.Generator().manual_seed(0))
    store = FeatureStore(rows)
    model = fit_given_model(store)
    features = embed_given(model, store, FeatureStore(rows[:3]))
    assert features.training.shape[:2] == (count, 1)
    assert features.training.shape[2] == sum(features.embedding.dimensions)
    assert features.test is not None
    torch.testing.assert_close(features.test, features.plain[:3])
    torch.testing.assert_close(features.plain.norm(dim=1), torch.ones(count))


def test_a_run_on_features(tmp_path: Path) -> None:
    run = finished(started(tmp_path / "run", source(), StrategyChooser(tune=False)))
    classifier = Classifier.load(run.folder.model)
    rows, labels = blobs(seed=1)
    assert classifier.takes_features
    with torch.no_grad():
        predicted = classifier(rows[:, None, None])
    assert float((predicted.argmax(dim=1) == labels).float().mean()) > 0.95
    torch.testing.assert_close(predicted.sum(dim=1), torch.ones(len(rows)))
    assert run.strategies[0].name == "labels only"
    assert sum(each.chosen for each in run.strategies) == 1
    assert run.result.data == GIVEN


def test_a_run_on_features_is_resumed(tmp_path: Path) -> None:
    data = source()
    run = started(tmp_path / "run", data)
    for record in run.records():
        if record.step >= 40:
            break
    again = finished(resume(run.folder, data))
    expected = finished(started(tmp_path / "other", data))
    rows = blobs(seed=1)[0][:, None, None]
    with torch.no_grad():
        ours, theirs = (Classifier.load(each.folder.model)(rows) for each in (again, expected))
    assert torch.equal(ours, theirs)
