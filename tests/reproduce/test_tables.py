"""The same lines as Markdown, CSV and LaTeX."""

import csv
from dataclasses import replace
from pathlib import Path

from fullmatch.reproduce import tables
from fullmatch.reproduce.grid import TABLES, Cell
from fullmatch.reproduce.lines import Line, lines
from tests.reproduce.conftest import method
from tests.reproduce.test_lines import CIFAR, entry


def some() -> list[Line]:
    rows = [method("FixMatch"), method("FullMatch"), method("UPS")]
    entries = [entry(rows[0], fold, 0.8 + fold / 100) for fold in range(2)]
    entries.append(entry(rows[1], 0, 0.85, steps=200))
    return lines(TABLES[1], rows, [CIFAR], entries, code="other")


def told_apart() -> list[Line]:
    row = method("FullMatch")
    other = entry(row, 0, 0.7)
    other["config"] = other["config"] | {"seed": 0, "data": {**other["config"]["data"]}}
    other["config"]["data"]["split"] = "a_b#{~}\\c.json"
    return lines(TABLES[1], [row], [CIFAR], [entry(row, 0, 0.8), other], code="abc")


def test_markdown() -> None:
    text = tables.markdown(some()).splitlines()
    assert len({line.count("|") for line in text}) == 1
    assert text[2] == (
        "| cifar10-250 | FixMatch | 100 | 0,1 | 78.50 ± 0.50 | 79.50 ± 0.50 | 80.50 ± 0.50 "
        "| 95.14 ± 0.05 | -14.64 | other code |"
    )
    assert text[3].startswith("| cifar10-250 | FullMatch | 200 | 0 | 83.00 | 84.00 | 85.00 |")
    assert text[4] == "| cifar10-250 | UPS | - | - | - | - | - | 94.89 ± 0.08 | - | - |"


def test_csv_can_be_computed_with() -> None:
    found = list(csv.DictReader(tables.comma_separated(some()).splitlines()))
    assert float(found[0]["best_mean"]) == 80.5 and float(found[0]["best_deviation"]) == 0.5
    assert found[1]["best_deviation"] == "" and found[1]["steps"] == "200"
    assert float(found[1]["difference"]) == -10.36
    assert found[2]["best_mean"] == "" and found[2]["paper_mean"] == "94.89"


def test_latex() -> None:
    text = tables.latex(TABLES[1], some())
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith("\\\\")]
    assert len(rows) == 4 and all(row.count("&") == 9 for row in rows)
    assert "{llrlrrrrrl}" in text and rows[0].endswith(r"& mark \\")
    assert rows[1].endswith(r"& other code \\")
    unmarked = tables.latex(TABLES[1], [replace(line, marks=()) for line in some()])
    assert "{llrlrrrrr}" in unmarked and "mark" not in unmarked
    assert "80.50 $\\pm$ 0.50" in text and "±" not in text and "(\\%)" in text


def test_lines_of_one_method_are_told_apart_in_every_form() -> None:
    rows = tables.markdown(told_apart()).splitlines()[2:]
    assert "| FullMatch |" in rows[0] and r"| FullMatch, data.split=a_b#{~}\c.json |" in rows[1]
    text = tables.latex(TABLES[1], told_apart())
    assert r"data.split=a\_b\#\{\textasciitilde{}\}\textbackslash{}c.json" in text
    assert "& other settings" in text and "other settings: not the published ones of today" in text
    found = list(csv.DictReader(tables.comma_separated(told_apart()).splitlines()))
    assert [line["settings"] for line in found] == ["", r"data.split=a_b#{~}\c.json"]
    assert "A setting after a method's name" in " ".join(tables.notes(told_apart()))
    assert "A setting after a method's name" not in " ".join(tables.notes(some()))


def test_notes_say_what_must_be_known() -> None:
    words = " ".join(tables.notes(some()))
    assert "chosen on the test images" in words and "1,048,576" in words
    assert "lines of their own" in words and "other code:" in words and "extra" not in words
    row = method("FixMatch")
    noextra = lines(TABLES[1], [row], [Cell("svhn-noextra", 40)], [])
    assert "no number of the paper belongs beside it" in " ".join(tables.notes(noextra))


def test_written(tmp_path: Path) -> None:
    paths = tables.write(tmp_path / "new", TABLES[1], some())
    assert [path.name for path in paths] == ["table1.md", "table1.csv", "table1.tex"]
    assert all(path.read_text() for path in paths)
