"""Whole pages for every kind of run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fullmatch.report import page
from fullmatch.report.gallery import Pictures
from fullmatch.storage.runs import Predictions, Run, read_run
from tests.report.reading import read
from tests.report.written import ODD, write_run


def blank(run: Run, found: Predictions | None = None) -> Pictures:
    """Grey squares for what is said of the test images, or of others."""
    found = found or run.predictions
    assert found is not None
    return Pictures(lambda at: Image.new("L", (8, 8), at), lambda at: f"number {at}", found)


def sections(text: str) -> list[str]:
    return [found["id"] or "" for found in read(text).named("section")]


def test_a_real_run_with_pictures_and_baseline(digits_run: Path) -> None:
    run = read_run(digits_run)
    text = page.report(run, blank(run))
    found = read(text)
    assert sections(text) == [
        *("result", "next", "curves", "unlabeled", "classes"),
        *("confusion", "calibration", "pictures", "settings"),
    ]
    assert "digits, 40 labels: fullmatch" in found.text
    assert "The unlabeled images" in found.text and "labels alone" in found.text
    assert len(found.named("img")) == 2 * page.PICTURES
    assert "training.batch" in found.text


@pytest.mark.parametrize(
    ("facts", "there", "away"),
    [
        ({}, {"curves", "calibration"}, {"pictures"}),
        ({"finished": False}, {"result", "next", "curves"}, {"classes", "calibration"}),
        ({"finished": False, "records": 0}, {"result", "next"}, {"curves", "unlabeled"}),
        ({"test": False, "evaluated": False}, {"curves", "unlabeled"}, {"classes"}),
        ({"evaluated": False}, {"curves", "classes"}, {"pictures"}),
        ({"unlabeled": 6}, {"curves", "classes"}, {"unlabeled"}),
    ],
)
def test_what_is_shown(tmp_path: Path, facts: Any, there: set[str], away: set[str]) -> None:
    found = set(sections(page.report(read_run(write_run(tmp_path / "run", **facts)))))
    assert there <= found and not away & found


def test_nothing_a_user_wrote_becomes_markup(tmp_path: Path) -> None:
    ill = {"words": "<i>ill</i>", "knob": "<i>pill</i>"}
    path = write_run(tmp_path / "<b>run</b>", classes=ODD, health=[ill], data="<u>pets</u>")
    text = page.report(read_run(path), blank(read_run(path)))
    found = read(text)
    assert not {"b", "i", "u", "note"} & {name for name, _ in found.tags}
    assert "<script>alert(1)</script>" in found.text and "<i>ill</i>" in found.text
    assert "a <note>" in found.text and '$x_1$ & "quoted"' in found.text
    read(page.comparison([read_run(path), read_run(path)]))


def test_classes_by_their_held_out_labels(tmp_path: Path) -> None:
    honest = {"accuracy": 0.5, "interval": [0.2, 0.8], "per_class": dict.fromkeys(ODD, 0.5)}
    honest["per_class"] |= {ODD[1]: None, ODD[2]: 0.25}
    path = write_run(tmp_path / "run", classes=ODD, test=False, evaluated=False, honest=honest)
    text = read(page.report(read_run(path))).text
    table = text[text.index("Held-out labels right") :]
    assert [table.index(name) for name in (ODD[2], ODD[0], ODD[1])] == sorted(
        table.index(name) for name in ODD
    )
    assert "not measured" in table[table.index(ODD[1]) :]


def test_why_there_are_no_pictures(tmp_path: Path) -> None:
    text = page.report(read_run(write_run(tmp_path / "run")), None, "They were <moved>.")
    assert "They were <moved>." in read(text).text


def test_few_test_images_say_nothing_of_calibration(tmp_path: Path) -> None:
    text = page.report(read_run(write_run(tmp_path / "run")))
    assert "too few test images" in text and "reliability-0" not in text


def test_a_run_without_mistakes(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    assert run.predictions is not None
    right = Predictions(run.predictions.probabilities, run.predictions.predicted)
    text = page.report(replace(run, predictions=right), blank(run, right))
    assert "every test image is classified right" in text


@pytest.mark.parametrize("count", [1, 2, 100])
def test_unlabeled_pictures_where_there_is_no_test(tmp_path: Path, count: int) -> None:
    run = read_run(write_run(tmp_path / "run", test=False, evaluated=False))
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], count)
    found = Predictions(probabilities, np.full(count, -1))
    text = page.report(run, blank(run, found))
    shown = [image["alt"] or "" for image in read(text).named("img")]
    assert len(shown) == len(set(shown)) == min(count, 2 * page.PICTURES)
    assert "pictures" in sections(text) and 'class="wrong"' not in text
    assert f"{count} unlabeled pictures" in text and "Least sure" in text
    assert all("it is" not in words for words in shown)


def test_comparison(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / name)) for name in ("one", "two")]
    text = page.comparison(runs)
    assert sections(text) == ["result", "curves", "settings"]
    assert "2 runs compared" in read(text).text and page.DIFFERENT_TESTS not in text


def test_other_test_images_are_noticed(tmp_path: Path) -> None:
    one, two = (read_run(write_run(tmp_path / name)) for name in ("one", "two"))
    assert one.predictions is not None
    fewer = Predictions(one.predictions.probabilities[:5], one.predictions.labels[:5])
    assert page.DIFFERENT_TESTS in page.comparison([replace(one, predictions=fewer), two])
    unfinished = read_run(write_run(tmp_path / "three", finished=False))
    assert page.alike([one, two, unfinished])
    first, second, third = (replace(one, result=one.result | {"test_hash": h}) for h in "aab")
    assert page.alike([first, second, two]) and not page.alike([first, second, third])


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / place / "run")) for place in ("a", "b")]
    assert page.names_of(runs) == [str(tmp_path / "a" / "run"), str(tmp_path / "b" / "run")]


def test_a_thousand_classes_make_a_page_of_reasonable_size(tmp_path: Path) -> None:
    classes = tuple(f"class {number}" for number in range(1000))
    run = read_run(write_run(tmp_path / "run", classes=classes))
    text = page.report(run)
    assert len(text) < 1_500_000 and "All 1000" in text
    assert np.array(run.scores["confusion"]).shape == (1000, 1000)
