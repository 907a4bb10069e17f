"""The page follows from the ledger, and the page in the docs is up to date."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.reproduce.entry import LedgerEntry
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.results_page import BEGIN, END, render_results, update_page
from tests.patterns import find_all
from tests.reproduce.test_lines import with_setting

DOCS = Path(__file__).parents[2] / "docs"


def with_data(entry: LedgerEntry, data: dict[str, str]) -> LedgerEntry:
    return replace(entry, config=entry.config | {"data": data})


def test_page_in_the_docs_is_up_to_date(tmp_path: Path) -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    page = tmp_path / "results.md"
    page.write_text(text, encoding="utf-8")
    ledger = shutil.copytree(DOCS / "results" / "runs", tmp_path / "results" / "runs")
    update_page(page, Ledger(ledger))
    assert page.read_text(encoding="utf-8") == text, "run: make results"


def test_pictures_of_the_page_exist() -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    for path in find_all(r"\]\(((?:images|results)/[^)]+)\)", text):
        assert (DOCS / path).is_file(), path


def test_update_changes_only_text_between_the_markers(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\noutdated\n{END}\nafter\n")
    update_page(page, ledger)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "outdated" not in text
    assert "### Table 1" in text
    assert "### Table 3" in text
    assert "### Table 4" not in text
    assert "| digits-40 | FixMatch+EML(BCE) | 8 | 0 |" in text
    assert "(ledger/fullmatch.json)" in text  # relative to the page
    update_page(page, ledger)
    assert page.read_text() == text


def test_own_pictures_are_listed_but_not_in_a_table(ledger: Ledger) -> None:
    entries = [with_data(entry, {"name": "pictures/of/mine"}) for entry in ledger.entries()]
    text = render_results(entries, Path("x"))
    assert "Table" not in text
    assert text.count("(x/") == 3
    entries = [with_data(entry, {"name": "digits"}) for entry in entries]  # no number of labels
    assert "Table" not in render_results(entries, Path("x"))
    assert "(x/two%20words.json)" in render_results(
        [replace(entries[0], name="two words")], Path("x")
    )


def test_nothing_recorded() -> None:
    assert render_results([], Path("x")) == "Nothing has been recorded yet.\n"


def test_page_without_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with pytest.raises(UserError, match=r"cannot read .*--page"):
        update_page(page, Ledger(tmp_path))
    page.write_text("nothing")
    with pytest.raises(UserError, match="does not have the markers"):
        update_page(page, Ledger(tmp_path))


def test_missing_ledger_does_not_empty_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nkept\n{END}", encoding="utf-8")
    with pytest.raises(UserError, match="gone is not a folder of results"):
        update_page(page, Ledger(tmp_path / "gone"))
    assert "kept" in page.read_text(encoding="utf-8")


def test_page_that_is_not_text(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        update_page(page, ledger)


def test_full_form_that_is_not_in_the_paper_has_a_line(ledger: Ledger) -> None:
    (entry,) = (each for each in ledger.entries() if each.name == "fullmatch")
    entry = with_setting(entry, "algorithm", "name", "softmatch")
    assert "| digits-40 | Full-SoftMatch | 8 | 0 |" in render_results([entry], Path("x"))
