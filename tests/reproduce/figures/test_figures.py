"""Every figure by name, from runs of any data set, as files that open."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from fullmatch.errors import UserError
from fullmatch.reproduce.figures import FIGURES, drawn, find, pictures
from fullmatch.reproduce.figures.shown import Shown
from fullmatch.reproduce.ledger import Ledger

CURVES = ("pseudo-labels", "negatives", "top-k", "time", "accuracy")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "IMAGES", 60)
    monkeypatch.setattr(pictures, "BATCH", 60)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    paths = drawn(name, [runs["fullmatch"], runs["eml"]], tmp_path)
    assert [path.name for path in paths] == [f"{name}.svg", f"{name}.png"]
    assert ET.parse(paths[0]).getroot().tag.endswith("svg")
    with Image.open(paths[1]) as image:
        assert image.width > 600 and len(image.convert("L").getcolors(256) or []) > 10
    words = paths[0].read_text(encoding="utf-8")
    assert "FullMatch" in words and "digits, 40 labels, 8 steps" in words


@pytest.mark.parametrize("name", CURVES)
def test_curves_from_the_ledger_alone(name: str, ledger: Ledger, tmp_path: Path) -> None:
    entry = ledger.folder / "fullmatch.json"
    assert all(path.exists() for path in drawn(name, [entry], tmp_path, stem="other"))


def test_the_same_run_gives_the_same_file(runs: dict[str, Path], tmp_path: Path) -> None:
    first, second = (
        drawn("overview", [runs["fullmatch"]], tmp_path / name)[0].read_bytes() for name in "ab"
    )
    assert first == second


@pytest.mark.parametrize("name", sorted(set(FIGURES) - set(CURVES)))
def test_more_than_curves_needs_the_run(name: str, ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs the run folder itself"):
        drawn(name, [ledger.folder / "fullmatch.json"], tmp_path)


@pytest.mark.parametrize("stem", ["../x", "deep/x", "/nowhere/x", "x/", ".", "..", "..."])
def test_a_stem_names_no_folder(stem: str, ledger: Ledger, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=f"--stem {stem} is no plain name of a file; .*--out"):
        drawn("accuracy", [ledger.folder / "eml.json"], tmp_path / "out", stem=stem)
    assert sorted(tmp_path.rglob("*")) == before
    paths = drawn("accuracy", [ledger.folder / "eml.json"], tmp_path / "out", stem="x.y")
    assert [path.name for path in paths] == ["x.y.svg", "x.y.png"]


def test_names_and_numbers() -> None:
    assert [find(name) for name in ("1a", "1b", "2", "fig4", "tsne")] == [
        *("pseudo-labels", "negatives", "ambiguous", "entropy", "tsne")
    ]
    with pytest.raises(UserError, match=r"expected one of pseudo-labels \(1a\).*mean 'entropy'"):
        find("entropie")


def test_what_the_runs_lack(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of the runs \(FixMatch\) logs negatives"):
        drawn("negatives", [runs["fixmatch"]], tmp_path)
    with pytest.raises(UserError, match="needs runs"):
        drawn("entropy", [], tmp_path)
    with pytest.raises(UserError, match="is no run folder"):
        drawn("entropy", [tmp_path], tmp_path)
    broken = tmp_path / "broken"
    shutil.copytree(runs["fixmatch"], broken)
    (broken / "predictions.safetensors").unlink()
    with pytest.raises(UserError, match="finish the run with: fullmatch resume"):
        drawn("entropy", [broken], tmp_path)


def test_data_that_is_not_there_is_not_fetched(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    moved = tmp_path / "moved"
    shutil.copytree(runs["fixmatch"], moved)
    config = moved / "config.toml"
    config.write_text(config.read_text().replace('"digits"', '"cifar10"'))
    with pytest.raises(UserError, match="cifar10"):
        drawn("tsne", [moved], tmp_path / "out")
    assert drawn("ambiguous", [moved], tmp_path / "out")  # goes without the picture


@pytest.mark.parametrize("name", ["entropy", "ambiguous", "time", "accuracy", "tsne"])
def test_runs_of_one_method_and_of_other_steps_are_told_apart(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    longer = shutil.copytree(runs["fixmatch"], tmp_path / "longer")
    log = longer / "metrics.jsonl"
    line = json.loads(log.read_text().splitlines()[-1])
    line |= {"step": 16, "seconds": line["seconds"] + 1}
    log.write_text(log.read_text() + json.dumps(line) + "\n")
    words = drawn(name, [runs["fixmatch"], longer], tmp_path)[0].read_text()
    assert "FixMatch (fixmatch)" in words and "FixMatch (longer)" in words
    assert "8 steps; digits, 40 labels, 16 steps" in words


def test_no_run_is_left_out_for_want_of_a_colour(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="8 runs at most, not 9"):
        drawn("accuracy", [runs["eml"]] * 9, tmp_path)


def test_runs_of_other_data(runs: dict[str, Path], tmp_path: Path) -> None:
    other = shutil.copytree(runs["eml"], tmp_path / "other")
    config = other / "config.toml"
    config.write_text(config.read_text().replace('"digits"', '"cifar10"'))
    with pytest.raises(UserError, match="is of other data than"):
        drawn("tsne", [runs["eml"], other], tmp_path)
    saved = load_file(other / "predictions.safetensors")
    save_file(saved | {"labels": saved["labels"].flip(0)}, other / "predictions.safetensors")
    with pytest.raises(UserError, match="tested on other images"):
        drawn("ambiguous", [runs["eml"], other], tmp_path)


def test_a_finished_run_without_test_images(runs: dict[str, Path], tmp_path: Path) -> None:
    untested = shutil.copytree(runs["eml"], tmp_path / "untested")
    (untested / "predictions.safetensors").unlink()
    result = json.loads((untested / "result.json").read_text())
    del result["teacher"]
    (untested / "result.json").write_text(json.dumps(result))
    with pytest.raises(UserError, match="had no test images"):
        drawn("entropy", [untested], tmp_path)


def test_a_curve_of_one_point_is_seen(runs: dict[str, Path], tmp_path: Path) -> None:
    short = shutil.copytree(runs["fixmatch"], tmp_path / "short")
    log = short / "metrics.jsonl"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    figure = FIGURES["pseudo-labels"].draw([Shown(short)])
    (axes,) = figure.axes
    assert axes.get_lines()[0].get_marker() == "o"
    assert all(tick == int(tick) for tick in axes.get_xticks())
