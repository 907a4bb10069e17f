"""Curves that are well-formed, follow the theme, and say in words where they end."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.pages.palette import LIGHT
from fullmatch.report import figures
from fullmatch.report.figures import Line
from fullmatch.storage.runs import Curve, read_run
from tests.report.svg import check, parsed, texts
from tests.report.written import write_run


def line(values: list[float], label: str = "loss") -> Line:
    return Line(label, Curve(np.arange(1.0, len(values) + 1), np.array(values)))


def test_every_curve_of_a_real_run(digits_run: Path) -> None:
    run = read_run(digits_run)
    for draw in (figures.accuracy, figures.loss, figures.use_of_unlabeled, figures.ruled_out):
        check(draw(run))
    labels = texts(parsed(figures.accuracy(run)))
    assert {"averaged model", "student", "labels only", "training step"} <= set(labels)


def test_nothing_to_draw() -> None:
    assert figures.over_steps("Loss", "loss", [line([])]) is None
    assert figures.over_steps("Loss", "loss", [line([float("nan")] * 3)]) is None


def test_ids_do_not_meet(digits_run: Path) -> None:
    run = read_run(digits_run)
    both = [parsed(figures.loss(run), "a"), parsed(figures.loss(run), "b")]
    first, second = ({e.get("id") for e in svg.iter() if e.get("id")} for svg in both)
    assert first and not first & second
    whole = figures.loss(run)
    assert whole is not None
    for target in re.findall(r"(?:url\(#|href=\"#)([^\")]+)", whole.svg("a")):
        assert target in first


def test_the_same_run_gives_the_same_bytes(digits_run: Path) -> None:
    drawn = [figures.accuracy(read_run(digits_run)) for _ in range(2)]
    assert drawn[0] is not None and drawn[1] is not None
    assert drawn[0].svg("a") == drawn[1].svg("a")


def test_a_run_that_lost_its_loss_and_one_of_a_single_record() -> None:
    parsed(figures.over_steps("Loss", "loss", [line([1.0, float("nan"), float("inf")])]))
    parsed(figures.over_steps("Loss", "loss", [line([1.0])]))


def test_words_say_where_the_curves_end() -> None:
    drawing = figures.over_steps("A", "a", [line([0.1, 0.25], "x"), line([0.5], "y")], share=True)
    assert drawing is not None and drawing.words == "At the last step: x 25.0 %; y 50.0 %."


def test_runs_beside_each_other(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / name)) for name in ("one", "two")]
    drawings = figures.overlaid(["one", "two"], runs)
    assert [d.title for d in drawings] == ["Test accuracy", "Loss", "Unlabeled images used"]
    assert {"one", "two"} <= set(texts(parsed(drawings[0])))
    strokes = re.findall(r"stroke: var\(--(one|two)\)", drawings[0].svg("x"))
    assert {"one", "two"} <= set(strokes)


def test_a_picture_for_the_readme(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    figures.curves_png([read_run(write_run(tmp_path / "run"))], path)
    with Image.open(path) as image:
        assert image.width > 600 and image.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20) or []}
    assert tuple(bytes.fromhex(LIGHT["one"][1:])) in colours


def test_a_run_without_test_images_has_no_accuracy_curve(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", evaluated=False, test=False))
    assert figures.accuracy(run) is None
    with pytest.raises(ValueError, match="runs: "):
        figures.curves_png([run], tmp_path / "x.png")
