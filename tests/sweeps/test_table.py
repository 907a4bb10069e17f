"""Means and deviations over seeds, best first, as text, CSV, Markdown and a figure."""

import csv
import statistics
from pathlib import Path

import pytest
from PIL import Image

from fullmatch.sweeps.figure import draw_sweep
from fullmatch.sweeps.score import RunScore, ScoreKind
from fullmatch.sweeps.table import build_table
from tests.sweeps.small_sweeps import make_sweep, score_all

RATES = {"0.01": 0.5, "0.03": 0.9, "0.1": 0.7}


def test_best_first_with_deviation(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.03,0.1", seeds=(0, 1, 2))
    score_all(sweep, RATES)
    table = build_table(sweep)
    assert [row.point.assignments for row in table.rows] == [
        ["optimizer.rate=0.03"],
        ["optimizer.rate=0.1"],
        ["optimizer.rate=0.01"],
    ]
    best = table.best
    assert best is not None
    assert best.mean == pytest.approx(0.89)
    assert best.deviation == pytest.approx(statistics.stdev([0.9, 0.89, 0.88]))
    assert table.headings == ["optimizer.rate", "seeds", ScoreKind.TEST.heading, "deviation"]
    assert table.cells(best) == ["0.03", "3", "89.00 %", "1.00 %"]
    assert "chosen on test" in table.to_markdown()
    csv_file, markdown = table.write()
    rows = list(csv.DictReader(csv_file.open(encoding="utf-8")))
    assert [row["optimizer.rate"] for row in rows] == ["0.03", "0.1", "0.01"]
    assert float(rows[0]["mean"]) == best.mean
    assert [float(rows[0][f"seed_{seed}"]) for seed in range(3)] == [0.9, 0.89, 0.88]
    assert markdown.read_text(encoding="utf-8").count("\n| 0.") == 3


def test_held_out_scores_stand_beside_the_test(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1", score=ScoreKind.HELD_OUT)
    score_all(sweep, RATES)
    table = build_table(sweep)
    assert table.headings[-1] == "test accuracy"
    assert "Test pictures play no part" in table.to_markdown()
    assert "chosen on test" not in table.to_markdown()


def test_settings_that_diverge_are_last(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1")
    first, second = sweep.points()
    good, bad = sweep.runs_of(second)
    sweep.write_score(good, RunScore(score=0.99))
    sweep.write_score(bad, RunScore(score=None, diverged="the loss became NaN at step 3"))
    sweep.write_score(sweep.runs_of(first)[0], RunScore(score=0.2))
    table = build_table(sweep)
    assert [table.cells(row)[:3] for row in table.rows] == [
        ["0.01", "1 of 2", "20.00 %"],
        ["0.1", "2, 1 diverged", "99.00 %"],
    ]
    assert "3 of 4 runs are done." in table.notes
    assert sweep.mean_score(second) == 0.99 / 2
    assert sweep.mean_score(first) is None


def test_a_sweep_without_any_score(tmp_path: Path) -> None:
    table = build_table(make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1"))
    assert table.rows == ()
    assert table.best is None
    assert table.notes[-1] == "0 of 4 runs are done."


@pytest.mark.parametrize(
    ("settings", "panels"),
    [
        (["optimizer.rate=0.01,0.03,0.1"], 1),
        (["optimizer.rate=0.01,0.03", "algorithm.name=fixmatch,fullmatch"], 2),
        ([], 1),
    ],
)
def test_figure(settings: list[str], panels: int, tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", *settings)
    score_all(sweep, RATES) if settings else sweep.write_score(
        sweep.runs_of(sweep.points()[0])[0], RunScore(score=0.5)
    )
    svg, png = draw_sweep(build_table(sweep))
    text = svg.read_text(encoding="utf-8")
    assert all(setting.partition("=")[0] in text for setting in settings)
    assert text.count('id="axes_') == panels
    assert "chosen on test" in text
    with Image.open(png) as image:
        assert image.width > 500
    first = svg.read_bytes()
    draw_sweep(build_table(sweep))
    assert svg.read_bytes() == first
