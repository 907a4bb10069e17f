"""Picture sizes are chosen by the median picture, and a survey lists every picture."""

from pathlib import Path

import pytest

from fullmatch.data.sources.picture_files import PictureSurvey, choose_form, choose_picture_size
from tests.own_pictures import picture, save


@pytest.mark.parametrize(
    ("sides", "size"),
    [([], 32), ([5], 32), ([64], 64), ([63, 65], 64), ([63, 63, 500], 32), ([9000], 224)],
)
def test_picture_size_follows_the_median(sides: list[int], size: int) -> None:
    assert choose_picture_size(sides) == size


def test_form_ignores_unreadable_files(tmp_path: Path) -> None:
    gray = save(picture("brick", 0, (120, 100)).convert("L"), tmp_path / "gray.png")
    color = save(picture("brick", 0, (120, 100)), tmp_path / "color.png")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"")
    assert choose_form([str(gray), str(broken)]) == (96, 1)
    assert choose_form([str(gray), str(color)]) == (96, 3)
    assert choose_form([str(broken)]) == (32, 3)


def test_items_of_a_survey() -> None:
    survey = PictureSurvey(labeled=[("a", "cat")], unlabeled=["b"], test=[("c", "dog")])
    assert list(survey.items()) == [
        ("a", "labeled", "cat"),
        ("b", "unlabeled", ""),
        ("c", "test", "dog"),
    ]
