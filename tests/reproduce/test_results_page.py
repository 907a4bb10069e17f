"""The page is what the ledger says, and the page in the docs is up to date."""

import shutil
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.results_page import BEGIN, END, results, update

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_in_the_docs_is_what_its_ledger_says(tmp_path: Path) -> None:
    kept = (DOCS / "results.md").read_text(encoding="utf-8")
    page = tmp_path / "results.md"
    page.write_text(kept, encoding="utf-8")
    ledger = shutil.copytree(DOCS / "results" / "runs", tmp_path / "results" / "runs")
    update(page, Ledger(ledger))
    assert page.read_text(encoding="utf-8") == kept, "run: make results"


def test_pictures_of_the_page_are_there() -> None:
    import re

    text = (DOCS / "results.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(((?:images|results)/[^)]+)\)", text):
        assert (DOCS / path).is_file(), path


def test_update_leaves_the_rest_alone(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\noutdated\n{END}\nafter\n")
    update(page, ledger)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "outdated" not in text
    assert "### Table 1" in text and "### Table 3" in text and "### Table 4" not in text
    assert "| digits-40 | FixMatch+EML(BCE) | 8 | 0 |" in text
    assert "(ledger/fullmatch.json)" in text  # a link that leads there from the page
    update(page, ledger)
    assert page.read_text() == text


def test_own_pictures_are_listed_but_in_no_table(ledger: Ledger) -> None:
    entries = ledger.entries()
    for entry in entries:
        entry["config"]["data"] = {"name": "pictures/of/mine"}
    text = results(entries, Path("x"))
    assert "Table" not in text and text.count("(x/") == 3
    for entry in entries:
        entry["config"]["data"] = {"name": "digits"}  # without a number of labels: no cell
    assert "Table" not in results(entries, Path("x"))
    assert "(x/two%20words.json)" in results([entries[0] | {"name": "two words"}], Path("x"))


def test_nothing_recorded() -> None:
    assert results([], Path("x")) == "Nothing has been recorded yet.\n"


def test_page_without_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with pytest.raises(UserError, match="cannot read the page"):
        update(page, Ledger(tmp_path))
    page.write_text("nothing")
    with pytest.raises(UserError, match="lacks the marks"):
        update(page, Ledger(tmp_path))


def test_a_ledger_that_is_not_there_empties_no_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nkept\n{END}", encoding="utf-8")
    with pytest.raises(UserError, match="gone is no folder of results"):
        update(page, Ledger(tmp_path / "gone"))
    assert "kept" in page.read_text(encoding="utf-8")


def test_a_page_that_is_no_text(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is no text in UTF-8"):
        update(page, ledger)


def test_a_full_form_that_the_paper_lacks_has_a_line(ledger: Ledger) -> None:
    (entry,) = (each for each in ledger.entries() if each["name"] == "fullmatch")
    entry["config"]["algorithm"]["name"] = "softmatch"
    assert "| digits-40 | full-softmatch | 8 | 0 |" in results([entry], Path("x"))
