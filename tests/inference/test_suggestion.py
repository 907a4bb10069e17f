"""Suggestions are uncertain, varied, and the same each time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.experiment.start import start
from fullmatch.inference import suggestion
from fullmatch.inference.novelty import predict_with_features
from fullmatch.inference.suggestion import cluster, suggest_uncertain
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.frozen_runs import frozen_config, tiny_body
from tests.own_pictures import clean_folder, picture, save
from tests.served import digit_files, digits_run
from tests.small_runs import finish

__all__ = ["tiny_body"]


@pytest.fixture(scope="module")
def run() -> TrainedRun:
    return TrainedRun(digits_run())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(digit_files(tmp_path_factory.mktemp("digits"), 300))


def test_uncertain_and_varied(run: TrainedRun, files: list[str]) -> None:
    suggestions = suggest_uncertain(run, files, 12)
    assert (suggestions.sampled, suggestions.unreadable) == (300, 0)
    names = [each.name for each in suggestions.pictures]
    assert len(set(names)) == 12
    margins = compute_margins(run, files)
    chosen = [margins[name] for name in names]
    assert chosen == sorted(chosen)  # the least certain first
    ordered = sorted(margins.values())
    assert chosen[0] == ordered[0]
    assert max(chosen) <= ordered[suggestion.SHORTLIST * 12 - 1]
    # Farther apart than the twelve least certain ones.
    least_certain = sorted(margins, key=lambda name: margins[name])[:12]
    features = compute_features(run, files)
    assert spread(features, names) > spread(features, least_certain)


def test_guess_and_reason_are_those_of_the_model(run: TrainedRun, files: list[str]) -> None:
    (picture,) = suggest_uncertain(run, files[:1], 3).pictures
    pixels = torch.from_numpy(np.array(Image.open(files[0])))[None, None]
    top = predict_with_features(run.classifier, pixels)[0][0].topk(2)
    first, second = (run.classifier.classes[code] for code in top.indices.tolist())
    assert picture.guess == first
    assert picture.confidence == pytest.approx(top.values[0].item())
    assert picture.reason.startswith(f"between {first} and {second}: ")


def test_repeatable_and_from_a_sample(run: TrainedRun, files: list[str]) -> None:
    assert suggest_uncertain(run, files, 5) == suggest_uncertain(run, files, 5)
    opened: list[str] = []

    def open_image(name: str) -> Image.Image:
        opened.append(name)
        return Image.open(name)

    suggestions = suggest_uncertain(run, files, 5, open_image=open_image, sample_size=40)
    assert len(suggestions.pictures) == 5
    assert suggestions.sampled == 40
    assert len(opened) == len(set(opened)) == 40
    assert sorted(opened) != sorted(files[:40])  # drawn from all of them


def test_duplicates_and_unreadable_files_are_not_suggested(run: TrainedRun, tmp_path: Path) -> None:
    (original,) = digit_files(tmp_path, 1)
    duplicates = [original]
    for number in range(5):
        duplicates.append(str(tmp_path / f"copy{number}.png"))
        Path(duplicates[-1]).write_bytes(Path(original).read_bytes())
    (tmp_path / "broken.png").write_text("not a picture")
    names = [*duplicates, str(tmp_path / "broken.png"), str(tmp_path / "gone.png")]
    suggestions = suggest_uncertain(run, names, 4)
    (picture,) = suggestions.pictures
    assert picture.name in duplicates
    assert (suggestions.sampled, suggestions.unreadable) == (8, 2)
    assert suggestions.basis == "the model's features"
    suggestions = suggest_uncertain(run, names[-2:], 4)
    assert suggestions.pictures == []
    assert suggestions.unreadable == 2


def test_clusters_are_represented_by_score_or_center() -> None:
    points = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [55.0]])
    assert {each.at for each in cluster(points, 2, 0)} == {1, 4}
    assert {each.at for each in cluster(points, 2, 0, -points[:, 0])} == {0, 3}
    assert sum(each.size for each in cluster(points, 2, 0)) == 6


@pytest.mark.usefixtures("tiny_body")
def test_stored_features_are_not_computed_again(tmp_path: Path) -> None:
    photos = clean_folder(tmp_path / "photos", labels=5, unlabeled=12, size=72)
    config = frozen_config(photos)
    run = TrainedRun(finish(start(config, RunFolder.planned("run", tmp_path / "run"))).folder.path)
    names = sorted(str(path) for path in (photos / "unlabeled").iterdir())
    opened: list[str] = []

    def open_image(name: str) -> Image.Image:
        opened.append(name)
        return Image.open(name)

    stored = suggest_uncertain(run, names, 6, open_image=open_image, sample_size=2)
    assert opened == []
    assert stored.basis == "features stored with the run"
    assert (stored.sampled, len(stored.pictures)) == (36, 6)
    # Pictures that came later are looked at, and compared with the others.
    added = str(save(picture("grass", 999, (80, 72)), photos / "unlabeled" / "new.png"))
    mixed = suggest_uncertain(run, [*names, added], 37, open_image=open_image)
    assert opened == [added]
    assert {each.name for each in mixed.pictures} == {*names, added}
    run.folder.features.unlink()
    computed = suggest_uncertain(run, names, 36)
    stored = suggest_uncertain(run, names, 36)
    assert computed.basis == "the model's features"
    by_name = {each.name: each for each in mixed.pictures}
    for each in computed.pictures:
        assert each.guess == by_name[each.name].guess
        assert each.confidence == pytest.approx(by_name[each.name].confidence, abs=0.01)


def compute_margins(run: TrainedRun, files: list[str]) -> dict[str, float]:
    top = predict_with_features(run.classifier, read_pixels(files))[0].topk(2, dim=1).values
    return dict(zip(files, (top[:, 0] - top[:, 1]).double().tolist(), strict=True))


def compute_features(run: TrainedRun, files: list[str]) -> dict[str, torch.Tensor]:
    features = predict_with_features(run.classifier, read_pixels(files))[1]
    return dict(zip(files, features, strict=True))


def read_pixels(files: list[str]) -> torch.Tensor:
    test = data.load("digits").test
    assert test is not None
    return test.read(torch.arange(len(files)))


def spread(features: dict[str, torch.Tensor], names: list[str]) -> float:
    """Mean distance to the nearest neighbor."""
    chosen = torch.stack([features[name] for name in names])
    return torch.cdist(chosen, chosen).topk(2, largest=False).values[:, 1].mean().item()
