"""Whole pages for every kind of run."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fullmatch.reports import page
from fullmatch.storage.predictions import Album, Predictions
from fullmatch.storage.result import HealthFinding
from fullmatch.storage.runs import StoredRun, read_run
from tests.html_page import parse_page
from tests.written_runs import ODD, make_estimate, write_old_run, write_run


def make_album(run: StoredRun, predictions: Predictions | None = None) -> Album:
    """Gray squares, with the run's predictions or with others."""
    predictions = predictions or run.predictions
    assert predictions is not None
    return Album(lambda at: Image.new("L", (8, 8), at), lambda at: f"number {at}", predictions)


def section_ids(text: str) -> list[str]:
    return [section["id"] or "" for section in parse_page(text).named("section")]


def test_trained_run_with_pictures_and_baseline(digits_run: Path) -> None:
    run = read_run(digits_run)
    text = page.render_report(run, make_album(run))
    parsed = parse_page(text)
    assert section_ids(text) == [
        *("result", "next", "curves", "unlabeled", "classes"),
        *("confusion", "calibration", "pictures", "settings"),
    ]
    assert "digits, 40 labels: fullmatch" in parsed.text
    assert "The unlabeled pictures" in parsed.text
    assert "compared with the same network trained on the labels only" in parsed.text
    assert len(parsed.named("img")) == 2 * page.THUMBNAILS
    assert "training.batch" in parsed.text


@pytest.mark.parametrize(
    ("facts", "present", "absent"),
    [
        ({}, {"curves", "calibration"}, {"pictures"}),
        ({"finished": False}, {"result", "next", "curves"}, {"classes", "calibration"}),
        ({"finished": False, "records": 0}, {"result", "next"}, {"curves", "unlabeled"}),
        ({"test": False, "evaluated": False}, {"curves", "unlabeled"}, {"classes"}),
        ({"evaluated": False}, {"curves", "classes"}, {"pictures"}),
        ({"unlabeled": 6}, {"curves", "classes"}, {"unlabeled"}),
    ],
)
def test_sections(tmp_path: Path, facts: Any, present: set[str], absent: set[str]) -> None:
    ids = set(section_ids(page.render_report(read_run(write_run(tmp_path / "run", **facts)))))
    assert present <= ids
    assert not absent & ids


def test_old_runs_give_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "new" / "run")
    write_old_run(tmp_path / "old" / "run")
    pages = []
    for place in ("new", "old"):
        monkeypatch.chdir(tmp_path / place)
        run = read_run(Path("run"))
        pages.append(page.render_report(run, make_album(run)))
    assert pages[0] == pages[1]


def test_text_from_users_is_escaped(tmp_path: Path) -> None:
    finding = HealthFinding(kind="k", message="<i>ill</i>", advice="<i>pill</i>")
    path = write_run(tmp_path / "<b>run</b>", classes=ODD, health=(finding,), data="<u>pets</u>")
    text = page.render_report(read_run(path), make_album(read_run(path)))
    parsed = parse_page(text)
    assert not {"b", "i", "u", "note"} & {name for name, _ in parsed.tags}
    assert "<script>alert(1)</script>" in parsed.text
    assert "<i>ill</i>" in parsed.text
    assert "a <note>" in parsed.text
    assert '$x_1$ & "quoted"' in parsed.text
    parse_page(page.render_comparison([read_run(path), read_run(path)]))


def test_classes_by_their_held_out_labels(tmp_path: Path) -> None:
    per_class = {ODD[0]: 0.5, ODD[1]: None, ODD[2]: 0.25}
    estimate = make_estimate(per_class=per_class)
    path = write_run(tmp_path / "run", classes=ODD, test=False, evaluated=False, estimate=estimate)
    text = parse_page(page.render_report(read_run(path))).text
    table = text[text.index("Recall on held-out labels") :]
    assert table.index(ODD[2]) < table.index(ODD[0]) < table.index(ODD[1])
    assert "not measured" in table[table.index(ODD[1]) :]


def test_reason_for_missing_pictures(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    text = page.render_report(run, None, "They were <moved>.")
    assert "They were <moved>." in parse_page(text).text


def test_few_test_images_give_no_calibration_chart(tmp_path: Path) -> None:
    text = page.render_report(read_run(write_run(tmp_path / "run")))
    assert "too few test pictures" in text
    assert "reliability-0" not in text


def test_run_without_mistakes(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    assert run.predictions is not None
    correct = Predictions(run.predictions.probabilities, run.predictions.predicted)
    text = page.render_report(replace(run, predictions=correct), make_album(run, correct))
    assert "every test picture is classified correctly" in text


@pytest.mark.parametrize("count", [1, 2, 100])
def test_unlabeled_pictures_where_there_is_no_test(tmp_path: Path, count: int) -> None:
    run = read_run(write_run(tmp_path / "run", test=False, evaluated=False))
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], count)
    predictions = Predictions(probabilities, np.full(count, -1))
    text = page.render_report(run, make_album(run, predictions))
    descriptions = [image["alt"] or "" for image in parse_page(text).named("img")]
    assert len(descriptions) == len(set(descriptions)) == min(count, 2 * page.THUMBNAILS)
    assert "pictures" in section_ids(text)
    assert 'class="wrong"' not in text
    assert f"{count} unlabeled pictures" in text
    assert "Least confident" in text
    assert all(", is " not in each and ", correct" not in each for each in descriptions)


def test_comparison(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / name)) for name in ("one", "two")]
    text = page.render_comparison(runs)
    assert section_ids(text) == ["result", "curves", "settings"]
    assert "Comparison of 2 runs" in parse_page(text).text
    assert page.DIFFERENT_TESTS not in text


def test_different_test_pictures_are_noticed(tmp_path: Path) -> None:
    one, two = (read_run(write_run(tmp_path / name)) for name in ("one", "two"))
    assert one.predictions is not None
    assert one.result is not None
    fewer = Predictions(one.predictions.probabilities[:5], one.predictions.labels[:5])
    different = page.render_comparison([replace(one, predictions=fewer), two])
    assert page.DIFFERENT_TESTS in different
    unfinished = read_run(write_run(tmp_path / "three", finished=False))
    assert page.share_test_pictures([one, two, unfinished])
    first, second, third = (
        replace(one, result=replace(one.result, test_hash=test_hash)) for test_hash in "aab"
    )
    assert page.share_test_pictures([first, second, two])
    assert not page.share_test_pictures([first, second, third])


def test_runs_of_the_same_name_have_distinct_names(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / place / "run")) for place in ("a", "b")]
    assert page.distinct_names(runs) == [str(tmp_path / "a" / "run"), str(tmp_path / "b" / "run")]


@pytest.mark.no_cover  # it would take twice as long
def test_thousand_classes_make_a_page_of_reasonable_size(tmp_path: Path) -> None:
    classes = tuple(f"class {number}" for number in range(1000))
    run = read_run(write_run(tmp_path / "run", classes=classes))
    text = page.render_report(run)
    assert len(text) < 1_500_000
    assert "All 1000" in text
    assert run.scores is not None
    assert np.array(run.scores.confusion).shape == (1000, 1000)


def test_needs_no_torch() -> None:
    code = "import sys, fullmatch.reports.page, fullmatch.cli.commands.report\n"
    code += "assert not {'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
