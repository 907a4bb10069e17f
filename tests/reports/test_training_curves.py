"""Curves are well-formed, follow the theme, and have a summary of where they end."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.pages.palette import LIGHT
from fullmatch.reports import training_curves
from fullmatch.reports.training_curves import LabeledCurve
from fullmatch.storage.runs import StepCurve, read_run
from tests.reports.svg import check_chart, parse_svg, texts
from tests.written_runs import write_run


def make_curve(values: list[float], label: str = "loss") -> LabeledCurve:
    return LabeledCurve(label, StepCurve(np.arange(1.0, len(values) + 1), np.array(values)))


def test_every_curve_of_a_trained_run(digits_run: Path) -> None:
    run = read_run(digits_run)
    for draw in (
        training_curves.draw_accuracy,
        training_curves.draw_loss,
        training_curves.draw_pseudo_labels,
        training_curves.draw_negative_labels,
    ):
        check_chart(draw(run))
    labels = texts(parse_svg(training_curves.draw_accuracy(run)))
    expected = {"averaged model", "student", "labels only", "training step"}
    assert expected <= set(labels)


def test_nothing_to_draw() -> None:
    assert training_curves.draw_curves("Loss", "loss", [make_curve([])]) is None
    assert training_curves.draw_curves("Loss", "loss", [make_curve([float("nan")] * 3)]) is None


def test_ids_are_unique_by_prefix(digits_run: Path) -> None:
    chart = training_curves.draw_loss(read_run(digits_run))
    assert chart is not None
    charts = [parse_svg(chart, "a"), parse_svg(chart, "b")]
    first, second = ({e.get("id") for e in svg.iter() if e.get("id")} for svg in charts)
    assert first
    assert not first & second
    for target in re.findall(r"(?:url\(#|href=\"#)([^\")]+)", chart.to_svg("a")):
        assert target in first


def test_same_run_gives_the_same_bytes(digits_run: Path) -> None:
    charts = [training_curves.draw_accuracy(read_run(digits_run)) for _ in range(2)]
    assert charts[0] is not None
    assert charts[1] is not None
    assert charts[0].to_svg("a") == charts[1].to_svg("a")


def test_nan_losses_and_a_single_record() -> None:
    curve = make_curve([1.0, float("nan"), float("inf")])
    check_chart(training_curves.draw_curves("Loss", "loss", [curve]))
    assert training_curves.draw_curves("Loss", "loss", [make_curve([1.0])]) is None


def test_summary_says_where_the_curves_end() -> None:
    curves = [make_curve([0.1, 0.25], "x"), make_curve([0.5], "y")]
    chart = training_curves.draw_curves("A", "a", curves, fraction=True)
    assert chart is not None
    assert chart.summary == "At the last step: x 25.0 %; y 50.0 %."


def test_comparison_of_runs(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / name)) for name in ("one", "two")]
    charts = training_curves.draw_comparisons(["one", "two"], runs)
    titles = [chart.title for chart in charts]
    assert titles == ["Test accuracy", "Loss", "Unlabeled pictures used"]
    assert {"one", "two"} <= set(texts(parse_svg(charts[0])))
    strokes = re.findall(r"stroke: var\(--(one|two)\)", charts[0].to_svg("x"))
    assert {"one", "two"} <= set(strokes)


def test_png_file(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    training_curves.save_accuracy_png([read_run(write_run(tmp_path / "run"))], path)
    with Image.open(path) as image:
        assert image.width > 600
        assert image.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
        colors = {color for _, color in image.convert("RGB").getcolors(1 << 20) or []}
    assert tuple(bytes.fromhex(LIGHT["one"][1:])) in colors


def test_run_without_test_images_has_no_accuracy_curve(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", evaluated=False, test=False))
    assert training_curves.draw_accuracy(run) is None
    with pytest.raises(ValueError, match="runs: "):
        training_curves.save_accuracy_png([run], tmp_path / "x.png")
