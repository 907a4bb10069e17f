"""Pages under docs/results are what the benchmarks write."""

from benchmarks import engine, fashion, zoo_digits
from fullmatch.algorithms import names

ADVICE = "write the page again with the script it names"


def test_digits_page_is_up_to_date() -> None:
    page = zoo_digits.render_page(zoo_digits.read_rows(), names())
    assert zoo_digits.PAGE.read_text(encoding="utf-8") == page, ADVICE


def test_fashion_page_is_up_to_date() -> None:
    measurements = fashion.read_measurements(fashion.RESULTS / "fashion.jsonl")
    page = (fashion.RESULTS / "fashion.md").read_text(encoding="utf-8")
    assert page == fashion.render_page(measurements), ADVICE


def test_engine_page_is_up_to_date() -> None:
    page = (engine.RESULTS / "engine.md").read_text(encoding="utf-8")
    assert page == engine.format_page(list(engine.read_ledger().values())), ADVICE
