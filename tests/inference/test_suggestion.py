"""Suggestions are unsure, of many kinds, and the same each time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.inference import suggestion
from fullmatch.inference.novelty import seen
from fullmatch.inference.suggestion import grouped, typical, unsure
from fullmatch.inference.trained_run import TrainedRun
from tests.own_pictures import COLORS, picture, save
from tests.served import digit_files, digits_run


@pytest.fixture(scope="module")
def run() -> TrainedRun:
    return TrainedRun(digits_run())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(digit_files(tmp_path_factory.mktemp("digits"), 300))


def test_unsure_ones_of_many_kinds(run: TrainedRun, files: list[str]) -> None:
    found = unsure(run, files, 12)
    assert len({one.name for one in found}) == 12
    margins = margins_of(run, files)
    chosen = np.array([margins[one.name] for one in found])
    assert list(chosen) == sorted(chosen)  # the least sure first
    usual = np.sort(list(margins.values()))
    assert chosen[0] == usual[0]
    assert chosen.max() <= usual[suggestion.SHORTLIST * 12 - 1]
    # Not simply the twelve least sure ones, and further apart than those are.
    least_sure = sorted(margins, key=lambda name: margins[name])[:12]
    points = features_of(run, files)
    assert spread(points, [one.name for one in found]) > spread(points, least_sure)


def test_words_and_numbers_are_the_models(run: TrainedRun, files: list[str]) -> None:
    (one,) = unsure(run, files[:1], 3)
    pixels = torch.from_numpy(np.array(Image.open(files[0])))[None, None]
    top = seen(run.classifier, pixels)[0][0].topk(2)
    first, second = (run.classifier.classes[code] for code in top.indices.tolist())
    assert one.guess == first and one.confidence == pytest.approx(top.values[0].item())
    assert one.reason.startswith(f"between {first} and {second}: ")


def test_the_same_again_and_only_some_are_looked_at(
    run: TrainedRun, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unsure(run, files, 5) == unsure(run, files, 5)
    monkeypatch.setattr(suggestion, "LOOKED_AT", 40)
    opened: list[str] = []

    def watched(name: str) -> Image.Image:
        opened.append(name)
        return Image.open(name)

    assert len(unsure(run, files, 5, opened=watched)) == 5
    assert len(opened) == len(set(opened)) == 40
    assert sorted(opened) != sorted(files[:40])  # drawn from all of them


def test_copies_and_unreadable_files_are_not_suggested(run: TrainedRun, tmp_path: Path) -> None:
    (original,) = digit_files(tmp_path, 1)
    copies = [original]
    for number in range(5):
        copies.append(str(tmp_path / f"copy{number}.png"))
        Path(copies[-1]).write_bytes(Path(original).read_bytes())
    (tmp_path / "broken.png").write_text("no picture")
    names = [*copies, str(tmp_path / "broken.png"), str(tmp_path / "gone.png")]
    assert [one.name in copies for one in unsure(run, names, 4)] == [True]
    assert [one.name in copies for one in typical(names, 4)] == [True]
    assert unsure(run, names[-2:], 4) == typical(names[-2:], 4) == []


def test_typical_ones_stand_for_each_kind(tmp_path: Path) -> None:
    names = [
        str(save(picture(kind, 100 * number + i), tmp_path / f"{kind}{i}.png"))
        for number, kind in enumerate(COLORS)
        for i in range(4 + 3 * number)
    ]
    found = typical(names, 3)
    kinds = [Path(one.name).stem.rstrip("0123456789") for one in found]
    assert kinds == ["water", "grass", "brick"]  # the largest group first
    assert found[0].reason == "one of 10 similar pictures"
    assert all(one.guess == "" and one.confidence is None for one in found)
    assert typical(names, 3) == found
    every = typical(names, 50)
    assert len(every) == len(names) and {one.reason for one in every} == {"unlike the rest"}


def test_groups_choose_by_score_or_centre() -> None:
    points = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [55.0]])
    assert {group.at for group in grouped(points, 2, 0)} == {1, 4}
    assert {group.at for group in grouped(points, 2, 0, -points[:, 0])} == {0, 3}
    assert sum(group.size for group in grouped(points, 2, 0)) == 6


def margins_of(run: TrainedRun, files: list[str]) -> dict[str, float]:
    top = seen(run.classifier, pixels_of(files))[0].topk(2, dim=1).values
    return dict(zip(files, (top[:, 0] - top[:, 1]).double().tolist(), strict=True))


def features_of(run: TrainedRun, files: list[str]) -> dict[str, torch.Tensor]:
    return dict(zip(files, seen(run.classifier, pixels_of(files))[1], strict=True))


def pixels_of(files: list[str]) -> torch.Tensor:
    test = data.load("digits").test
    assert test is not None
    return test.read(torch.arange(len(files)))


def spread(points: dict[str, torch.Tensor], names: list[str]) -> float:
    """Mean distance to the nearest of the others."""
    chosen = torch.stack([points[name] for name in names])
    return torch.cdist(chosen, chosen).topk(2, largest=False).values[:, 1].mean().item()
