"""Lines as Markdown, CSV and LaTeX."""

import csv
from pathlib import Path

from fullmatch.reproduce import tables
from fullmatch.reproduce.grid import TABLES, TableCell
from fullmatch.reproduce.latex import to_latex
from fullmatch.reproduce.lines import TableLine, build_lines
from tests.reproduce.conftest import row_named
from tests.reproduce.test_lines import CIFAR, make_entry, with_setting


def example_lines() -> list[TableLine]:
    rows = [row_named("FixMatch"), row_named("FullMatch"), row_named("UPS")]
    entries = [make_entry(rows[0], fold, 0.8 + fold / 100) for fold in range(2)]
    entries.append(make_entry(rows[1], 0, 0.85, steps=200))
    return build_lines(TABLES[1], rows, [CIFAR], entries, code="other")


def lines_of_one_method() -> list[TableLine]:
    row = row_named("FullMatch")
    other = with_setting(make_entry(row, 0, 0.7), "data", "split", "a_b#{~}\\c.json")
    return build_lines(TABLES[1], [row], [CIFAR], [make_entry(row, 0, 0.8), other], code="abc")


def test_markdown() -> None:
    text = tables.to_markdown(example_lines()).splitlines()
    assert len({line.count("|") for line in text}) == 1
    assert text[2] == (
        "| cifar10-250 | FixMatch | 100 | 0,1 | 78.50 ± 0.50 | 79.50 ± 0.50 | 80.50 ± 0.50 "
        "| 95.14 ± 0.05 | -14.64 | other code |"
    )
    assert text[3].startswith("| cifar10-250 | FullMatch | 200 | 0 | 83.00 | 84.00 | 85.00 |")
    assert text[4] == "| cifar10-250 | UPS | - | - | - | - | - | 94.89 ± 0.08 | - | - |"


def test_csv_has_plain_numbers() -> None:
    rows = list(csv.DictReader(tables.to_csv(example_lines()).splitlines()))
    assert float(rows[0]["best_mean"]) == 80.5
    assert float(rows[0]["best_deviation"]) == 0.5
    assert rows[1]["best_deviation"] == ""
    assert rows[1]["steps"] == "200"
    assert float(rows[1]["difference"]) == -10.36
    assert rows[2]["best_mean"] == ""
    assert rows[2]["paper_mean"] == "94.89"


def test_lines_of_one_method_differ_in_every_format() -> None:
    rows = tables.to_markdown(lines_of_one_method()).splitlines()[2:]
    assert "| FullMatch |" in rows[0]
    assert r"| FullMatch, data.split=a_b#{~}\c.json |" in rows[1]
    text = to_latex(TABLES[1], lines_of_one_method())
    assert r"data.split=a\_b\#\{\textasciitilde{}\}\textbackslash{}c.json" in text
    entries = list(csv.DictReader(tables.to_csv(lines_of_one_method()).splitlines()))
    assert [entry["settings"] for entry in entries] == ["", r"data.split=a_b#{~}\c.json"]
    assert "A setting after a method's name" in " ".join(tables.make_notes(lines_of_one_method()))
    assert "A setting after a method's name" not in " ".join(tables.make_notes(example_lines()))


def test_notes() -> None:
    words = " ".join(tables.make_notes(example_lines()))
    assert "chosen on the test images" in words
    assert "1,048,576" in words
    assert "on separate lines" in words
    assert "other code:" in words
    assert "extra" not in words
    row = row_named("FixMatch")
    noextra = build_lines(TABLES[1], [row], [TableCell("svhn-noextra", 40)], [])
    assert "the paper's numbers do not apply to it" in " ".join(tables.make_notes(noextra))


def test_write_table(tmp_path: Path) -> None:
    paths = tables.write_table(tmp_path / "new", TABLES[1], example_lines())
    assert [path.name for path in paths] == ["table1.md", "table1.csv", "table1.tex"]
    assert all(path.read_text() for path in paths)


def test_numbers_at_chance_say_so() -> None:
    row, other = row_named("FixMatch"), row_named("FullMatch")
    entries = [make_entry(row, 0, 0.12), make_entry(other, 0, 0.8)]  # last is 0.02 lower
    lines = build_lines(TABLES[1], [row, other], [CIFAR], entries)
    text = tables.to_markdown(lines)
    assert "| 10.00 (chance: 10.00) | 11.00 | 12.00 |" in text
    assert text.count("chance:") == 1
    note = "Guessing among the classes of cifar10-250 is right for 10.00 %. Not better: FixMatch."
    assert note in tables.make_notes(lines)
