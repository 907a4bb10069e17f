"""Pages under docs/results are what the benchmarks write."""

import shutil
from pathlib import Path

from benchmarks.measurements import read_measurements

from benchmarks import engine, fashion, long_tailed, open_set, own_pictures, strategies, zoo_digits
from fullmatch.algorithms import names

ADVICE = "write the page again with the script it names"


def test_digits_page_is_up_to_date() -> None:
    page = zoo_digits.render_page(zoo_digits.read_rows(), names())
    assert zoo_digits.PAGE.read_text(encoding="utf-8") == page, ADVICE


def test_fashion_page_is_up_to_date() -> None:
    measurements = read_measurements(fashion.Measurement, fashion.RESULTS / "fashion.jsonl")
    page = (fashion.RESULTS / "fashion.md").read_text(encoding="utf-8")
    assert page == fashion.render_page(measurements), ADVICE


def test_page_on_unknown_classes_is_up_to_date(tmp_path: Path) -> None:
    for name in ("open_set.jsonl", open_set.NOTES):
        if (open_set.RESULTS / name).exists():
            shutil.copy(open_set.RESULTS / name, tmp_path)
    page = (open_set.RESULTS / "open_set.md").read_text(encoding="utf-8")
    assert page == open_set.write_page(tmp_path), ADVICE


def test_page_on_long_tailed_classes_is_up_to_date() -> None:
    measurements = read_measurements(
        long_tailed.LongTailedMeasurement, long_tailed.RESULTS / "long_tailed.jsonl"
    )
    notes = (long_tailed.RESULTS / long_tailed.NOTES).read_text(encoding="utf-8")
    page = (long_tailed.RESULTS / "long_tailed.md").read_text(encoding="utf-8")
    assert page == long_tailed.render_page(measurements, notes), ADVICE


def test_page_on_strategies_is_up_to_date() -> None:
    measurements = strategies.read_measurements(strategies.RESULTS / "strategies.jsonl")
    page = (strategies.RESULTS / "strategies.md").read_text(encoding="utf-8")
    assert page == strategies.render_page(measurements), ADVICE


def test_page_on_own_pictures_is_up_to_date() -> None:
    measurements = read_measurements(
        own_pictures.Measurement, own_pictures.RESULTS / "own_pictures.jsonl"
    )
    page = (own_pictures.RESULTS / "own_pictures.md").read_text(encoding="utf-8")
    assert page == own_pictures.render_page(measurements), ADVICE


def test_engine_page_is_up_to_date() -> None:
    page = (engine.RESULTS / "engine.md").read_text(encoding="utf-8")
    assert page == engine.format_page(list(engine.read_ledger().values())), ADVICE
