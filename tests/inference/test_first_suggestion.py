"""The first pictures to label are typical of many, and of kinds without labels."""

from pathlib import Path

import numpy as np
import pytest

from fullmatch.inference.first_suggestion import cluster_with_labels, suggest_typical
from tests.own_pictures import COLORS, picture, save
from tests.photos import KINDS, photo
from tests.served import digit_files


def kinds_of(names: list[str]) -> list[str]:
    return [Path(name).stem.rstrip("0123456789") for name in names]


def write_photos(folder: Path, *counts: int) -> list[str]:
    kinds = [*KINDS, "sky"]
    return [
        str(save(photo(kind, 1000 * number + at), folder / f"{kind}{at}.png"))
        for number, (kind, count) in enumerate(zip(kinds, counts, strict=False))
        for at in range(count)
    ]


def test_small_pictures_are_compared_by_color(tmp_path: Path) -> None:
    names = [
        str(save(picture(kind, 100 * number + i), tmp_path / f"{kind}{i}.png"))
        for number, kind in enumerate(COLORS)
        for i in range(4 + 3 * number)
    ]
    suggestions = suggest_typical(names, 3)
    # The largest cluster first.
    assert kinds_of([each.name for each in suggestions.pictures]) == ["water", "grass", "brick"]
    assert suggestions.pictures[0].reason == "one of 10 similar pictures"
    assert suggestions.basis == "color: features need color pictures of at least 64 pixels"
    assert all(each.guess == "" and each.confidence is None for each in suggestions.pictures)
    assert suggest_typical(names, 3) == suggestions
    every = suggest_typical(names, 50).pictures
    assert len(every) == len(names)
    assert {each.reason for each in every} == {"unlike the others"}


def test_photos_are_compared_by_features(tmp_path: Path) -> None:
    names = write_photos(tmp_path, 6, 9, 3)
    shown: list[tuple[int, int]] = []
    suggestions = suggest_typical(
        names, 3, progress=lambda done, total: shown.append((done, total))
    )
    assert suggestions.basis.startswith("features of timm:")
    chosen = kinds_of([each.name for each in suggestions.pictures])
    assert sorted(chosen) == ["balls", "bricks", "sky"]
    assert chosen[0] == "bricks"
    assert shown[-1] == (18, 18)


def test_kinds_with_labels_come_last(tmp_path: Path) -> None:
    names = write_photos(tmp_path, 8, 8, 5)
    labeled = [name for name in names if "bricks" in name][:2]
    unlabeled = [name for name in names if name not in labeled]
    chosen = [each.name for each in suggest_typical(unlabeled, 2, labeled=labeled).pictures]
    assert sorted(kinds_of(chosen)) == ["balls", "sky"]
    assert not set(chosen) & set(labeled)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_photos_and_copies(tmp_path: Path, count: int) -> None:
    names = write_photos(tmp_path, count)
    assert len(suggest_typical(names, 5).pictures) == count
    copies = [str(save(photo("balls", 0), tmp_path / f"copy{at}.png")) for at in range(count)]
    (only,) = suggest_typical(copies, 5).pictures
    assert only.name in copies


def test_unreadable_files_are_counted(tmp_path: Path) -> None:
    (original,) = digit_files(tmp_path, 1)
    (tmp_path / "broken.png").write_text("not a picture")
    broken = [str(tmp_path / "broken.png"), str(tmp_path / "gone.png")]
    suggestions = suggest_typical([original, *broken], 4)
    assert [each.name for each in suggestions.pictures] == [original]
    assert (suggestions.sampled, suggestions.unreadable) == (3, 2)
    suggestions = suggest_typical(broken, 4)
    assert suggestions.pictures == []
    assert suggestions.unreadable == 2
    photos = write_photos(tmp_path, 4)
    suggestions = suggest_typical([*photos, *broken], 3)
    assert (len(suggestions.pictures), suggestions.unreadable) == (3, 2)


def test_clusters_are_represented_by_their_most_central_unlabeled_picture() -> None:
    points = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [55.0]])
    labeled = np.zeros(6, bool)
    assert {each.at for each in cluster_with_labels(points, labeled, 2, 0)} == {1, 4}
    labeled[1] = True
    first, *_ = cluster_with_labels(points, labeled, 1, 0)
    assert first.at in (3, 4)
