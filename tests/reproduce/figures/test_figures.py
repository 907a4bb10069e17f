"""Every figure by name, written as valid files."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from fullmatch.errors import UserError
from fullmatch.reproduce.figures import FIGURES, draw_figure, find_figure
from fullmatch.reproduce.figures.runs import FigureRun
from fullmatch.reproduce.ledger import Ledger

CURVES = ("pseudo-labels", "negatives", "top-k", "time", "accuracy")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    paths = draw_figure(name, [runs["fullmatch"], runs["eml"]], tmp_path)
    assert [path.name for path in paths] == [f"{name}.svg", f"{name}.png"]
    assert ET.parse(paths[0]).getroot().tag.endswith("svg")
    with Image.open(paths[1]) as image:
        assert image.width > 600
        assert len(image.convert("L").getcolors(256) or []) > 10
    words = paths[0].read_text(encoding="utf-8")
    assert "FullMatch" in words
    assert "digits, 40 labels, 8 steps" in words


@pytest.mark.parametrize("name", CURVES)
def test_curves_from_the_ledger(name: str, ledger: Ledger, tmp_path: Path) -> None:
    entry = ledger.folder / "fullmatch.json"
    assert all(path.exists() for path in draw_figure(name, [entry], tmp_path, stem="other"))


def test_same_run_gives_the_same_file(runs: dict[str, Path], tmp_path: Path) -> None:
    first, second = (
        draw_figure("overview", [runs["fullmatch"]], tmp_path / name)[0].read_bytes()
        for name in "ab"
    )
    assert first == second


@pytest.mark.parametrize("name", sorted(set(FIGURES) - set(CURVES)))
def test_other_figures_need_the_run_folder(name: str, ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs the run folder itself"):
        draw_figure(name, [ledger.folder / "fullmatch.json"], tmp_path)


@pytest.mark.parametrize("name", ["accuracy", "entropy", "overview", "time"])
def test_figure_without_a_title(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "plain.svg"
    assert draw_figure(name, [runs["fullmatch"], runs["eml"]], out, title=False) == [out]
    words = out.read_text(encoding="utf-8")
    assert "digits, 40 labels" not in words
    if name != "overview":  # of one method, which the caption names
        assert "FullMatch" in words


def test_formats(ledger: Ledger, tmp_path: Path) -> None:
    entry = [ledger.folder / "fullmatch.json"]
    paths = draw_figure("accuracy", entry, tmp_path / "a", formats="pdf, png")
    assert [path.name for path in paths] == ["accuracy.pdf", "accuracy.png"]
    assert paths[0].read_bytes().startswith(b"%PDF")
    assert b"/Type3" not in paths[0].read_bytes()
    again = draw_figure("accuracy", entry, tmp_path / "b.PDF")
    assert again[0].read_bytes() == paths[0].read_bytes()
    with pytest.raises(UserError, match=r"unknown format 'pgn': .* did you mean 'png'"):
        draw_figure("accuracy", entry, tmp_path, formats="pgn")
    with pytest.raises(UserError, match="is a file; leave out --stem and --format"):
        draw_figure("accuracy", entry, tmp_path / "x.svg", formats="png")


def test_seeds_are_one_line_with_a_band(tmp_path: Path) -> None:
    ledger = Path(__file__).parents[3] / "docs" / "results" / "runs"
    paths = [
        path
        for method in ("fixmatch", "fullmatch")
        for path in ledger.glob(f"digits-40-{method}-?-800-*")
    ]
    assert len(paths) == 6
    figure = FIGURES["accuracy"].draw([FigureRun(path) for path in paths])
    (axes,) = figure.axes
    assert [str(line.get_label()) for line in axes.get_lines()] == [
        "FixMatch, 3 seeds: 95.6 ± 1.0",
        "FullMatch, 3 seeds: 95.9 ± 1.1",
    ]
    assert len(axes.collections) == 2
    words = draw_figure("accuracy", [*paths, *ledger.glob("digits-40-fixmatch-0-1600*")], tmp_path)
    assert "FixMatch, 1,600 steps: 97.2" in words[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("stem", ["../x", "deep/x", "/nowhere/x", "x/", ".", "..", "..."])
def test_stem_is_a_plain_file_name(stem: str, ledger: Ledger, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=f"--stem {stem} is not a plain file name; .*--out"):
        draw_figure("accuracy", [ledger.folder / "eml.json"], tmp_path / "out", stem=stem)
    assert sorted(tmp_path.rglob("*")) == before
    paths = draw_figure("accuracy", [ledger.folder / "eml.json"], tmp_path / "out", stem="x.y")
    assert [path.name for path in paths] == ["x.y.svg", "x.y.png"]


def test_names_and_numbers() -> None:
    assert [find_figure(name) for name in ("1a", "1b", "2", "fig4", "tsne")] == [
        *("pseudo-labels", "negatives", "ambiguous", "entropy", "tsne")
    ]
    with pytest.raises(UserError, match=r"expected one of pseudo-labels \(1a\).*mean 'entropy'"):
        find_figure("entropie")


def test_runs_that_lack_something(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of the runs \(FixMatch\) logs negatives"):
        draw_figure("negatives", [runs["fixmatch"]], tmp_path)
    with pytest.raises(UserError, match="needs runs"):
        draw_figure("entropy", [], tmp_path)
    with pytest.raises(UserError, match="is not a run folder"):
        draw_figure("entropy", [tmp_path], tmp_path)
    broken = tmp_path / "broken"
    shutil.copytree(runs["fixmatch"], broken)
    (broken / "predictions.safetensors").unlink()
    with pytest.raises(UserError, match="finish the run with: fullmatch resume"):
        draw_figure("entropy", [broken], tmp_path)


def test_missing_data_is_not_downloaded(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    moved = tmp_path / "moved"
    shutil.copytree(runs["fixmatch"], moved)
    config = moved / "config.toml"
    config.write_text(config.read_text().replace('"digits"', '"cifar10"'))
    with pytest.raises(UserError, match="cifar10"):
        draw_figure("tsne", [moved], tmp_path / "out")
    assert draw_figure("ambiguous", [moved], tmp_path / "out")  # without the picture


@pytest.mark.parametrize("name", ["entropy", "ambiguous", "time", "accuracy", "tsne"])
def test_runs_of_one_method_have_distinct_labels(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    longer = shutil.copytree(runs["fixmatch"], tmp_path / "longer")
    log = longer / "metrics.jsonl"
    line = json.loads(log.read_text().splitlines()[-1])
    line |= {"step": 16, "seconds": line["seconds"] + 1}
    log.write_text(log.read_text() + json.dumps(line) + "\n")
    words = draw_figure(name, [runs["fixmatch"], longer], tmp_path)[0].read_text()
    assert "FixMatch (fixmatch)" in words
    assert "FixMatch (longer)" in words
    assert "8 steps; digits, 40 labels, 16 steps" in words


def test_more_runs_than_colors(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at most 8 runs, not 9"):
        draw_figure("accuracy", [runs["eml"]] * 9, tmp_path)


def test_runs_of_other_data(runs: dict[str, Path], tmp_path: Path) -> None:
    other = shutil.copytree(runs["eml"], tmp_path / "other")
    config = other / "config.toml"
    config.write_text(config.read_text().replace('"digits"', '"cifar10"'))
    with pytest.raises(UserError, match="is of other data than"):
        draw_figure("tsne", [runs["eml"], other], tmp_path)
    saved = load_file(other / "predictions.safetensors")
    save_file(saved | {"labels": saved["labels"].flip(0)}, other / "predictions.safetensors")
    with pytest.raises(UserError, match="tested on other images"):
        draw_figure("ambiguous", [runs["eml"], other], tmp_path)


def test_finished_run_without_test_images(runs: dict[str, Path], tmp_path: Path) -> None:
    untested = shutil.copytree(runs["eml"], tmp_path / "untested")
    (untested / "predictions.safetensors").unlink()
    result = json.loads((untested / "result.json").read_text())
    result["teacher"] = None
    (untested / "result.json").write_text(json.dumps(result))
    with pytest.raises(UserError, match="had no test images"):
        draw_figure("entropy", [untested], tmp_path)


def test_curve_of_one_point_has_a_marker(runs: dict[str, Path], tmp_path: Path) -> None:
    short = shutil.copytree(runs["fixmatch"], tmp_path / "short")
    log = short / "metrics.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    figure = FIGURES["pseudo-labels"].draw([FigureRun(short)])
    (axes,) = figure.axes
    assert axes.get_lines()[0].get_marker() == "o"
    assert all(tick == int(tick) for tick in axes.get_xticks())
