"""Suggestions are uncertain, varied, and the same each time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.inference import suggestion
from fullmatch.inference.novelty import predict_with_features
from fullmatch.inference.suggestion import cluster, suggest_typical, suggest_uncertain
from fullmatch.inference.trained_run import TrainedRun
from tests.own_pictures import COLORS, picture, save
from tests.served import digit_files, digits_run


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


def test_repeatable_and_from_a_sample(
    run: TrainedRun, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suggest_uncertain(run, files, 5) == suggest_uncertain(run, files, 5)
    monkeypatch.setattr(suggestion, "SAMPLE", 40)
    opened: list[str] = []

    def open_image(name: str) -> Image.Image:
        opened.append(name)
        return Image.open(name)

    suggestions = suggest_uncertain(run, files, 5, open_image=open_image)
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
    for suggestions in (suggest_uncertain(run, names, 4), suggest_typical(names, 4)):
        (picture,) = suggestions.pictures
        assert picture.name in duplicates
        assert (suggestions.sampled, suggestions.unreadable) == (8, 2)
    for suggestions in (suggest_uncertain(run, names[-2:], 4), suggest_typical(names[-2:], 4)):
        assert suggestions.pictures == []
        assert suggestions.unreadable == 2


def test_typical_pictures_of_every_kind(tmp_path: Path) -> None:
    names = [
        str(save(picture(kind, 100 * number + i), tmp_path / f"{kind}{i}.png"))
        for number, kind in enumerate(COLORS)
        for i in range(4 + 3 * number)
    ]
    suggestions = suggest_typical(names, 3)
    kinds = [Path(each.name).stem.rstrip("0123456789") for each in suggestions.pictures]
    assert kinds == ["water", "grass", "brick"]  # the largest cluster first
    assert suggestions.pictures[0].reason == "one of 10 similar pictures"
    assert all(each.guess == "" and each.confidence is None for each in suggestions.pictures)
    assert suggest_typical(names, 3) == suggestions
    every = suggest_typical(names, 50).pictures
    assert len(every) == len(names)
    assert {each.reason for each in every} == {"unlike the others"}


def test_clusters_are_represented_by_score_or_center() -> None:
    points = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [55.0]])
    assert {each.at for each in cluster(points, 2, 0)} == {1, 4}
    assert {each.at for each in cluster(points, 2, 0, -points[:, 0])} == {0, 3}
    assert sum(each.size for each in cluster(points, 2, 0)) == 6


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
