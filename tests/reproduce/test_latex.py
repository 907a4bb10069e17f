"""Tables for a paper, compiled as one."""

import subprocess
from pathlib import Path

from fullmatch.reproduce.grid import TABLES, PaperTable, TableCell
from fullmatch.reproduce.latex import to_latex
from fullmatch.reproduce.lines import TableLine, build_lines
from fullmatch.reproduce.tables import special_notes
from tests.reproduce.conftest import row_named
from tests.reproduce.test_lines import CIFAR, make_entry
from tests.reproduce.test_tables import lines_of_one_method

DIGITS = TableCell("digits", 40)
DOCUMENT = (
    r"\documentclass{article}\usepackage{booktabs}"
    r"\textwidth=470pt\hbadness=10000\begin{document}See Table~\ref{tab:table1}. "
)


def grid_lines() -> list[TableLine]:
    """FixMatch over two folds, FullMatch with one, in two columns of different steps."""
    rows = [row_named("FixMatch"), row_named("FullMatch"), row_named("UPS")]
    entries = [make_entry(rows[0], fold, 0.8 + fold / 100) for fold in range(2)]
    entries += [make_entry(rows[0], fold, 0.9, cell=DIGITS, steps=800) for fold in range(2)]
    entries.append(make_entry(rows[1], 0, 0.85))
    return build_lines(TABLES[1], rows, [CIFAR, DIGITS], entries, code="abc")


def write(table: PaperTable, lines: list[TableLine], protocol: str = "best") -> str:
    return to_latex(table, lines, special_notes(lines), protocol)


def test_grid() -> None:
    text = write(TABLES[1], grid_lines())
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert rows[0] == r"Method & \multicolumn{1}{c}{CIFAR-10} & \multicolumn{1}{c}{Digits} \\"
    assert rows[1] == r"Labels & 250 & 40 \\"
    assert rows[2] == r"FixMatch & 80.50$_{\pm 0.50}$ & \textbf{90.00}$_{\pm 0.00}$ \\"
    assert rows[3] == r"FullMatch & \textbf{85.00}\textsuperscript{a} & -- \\"
    assert rows[4].endswith(r"\emph{As published}} \\")
    assert r"UPS & 94.89$_{\pm 0.08}$ & -- \\" in rows  # not run: only the paper's number
    assert r"\label{tab:table1}" in text
    below = text.split(r"\end{tabular}")[1]
    assert r"\textsuperscript{a}\,1 run." in below
    assert "100 steps (CIFAR-10), 800 steps (Digits)" in below
    assert r"mean $\pm$ standard deviation over 2 choices of labels" in below


def test_protocol_is_chosen_and_said() -> None:
    text = write(TABLES[1], grid_lines(), "last")
    assert r"78.50$_{\pm 0.50}$" in text
    assert "the last step" in text


def test_methods_with_several_numbers_of_steps_have_several_rows() -> None:
    row = row_named("FixMatch")
    entries = [make_entry(row, 0, 0.8), make_entry(row, 0, 0.9, steps=200)]
    text = write(TABLES[1], build_lines(TABLES[1], [row], [CIFAR], entries))
    assert r"FixMatch, 100 steps & 80.00 \\" in text
    assert r"FixMatch, 200 steps & \textbf{90.00} \\" in text


def test_tables_compile_and_fit_a_page(tmp_path: Path) -> None:
    """The paper's widest table, one with two measures, and one with every special character."""
    table1, table2 = TABLES[1], TABLES[2]
    entries = [
        make_entry(row, fold, 0.9 + fold / 100, cell=cell)
        for row in table1.rows[:2]
        for cell in table1.cells
        for fold in range(2)
    ]
    texts = [
        write(table1, build_lines(table1, table1.rows, table1.cells, entries, code="other")),
        write(table2, build_lines(table2, table2.rows, table2.cells, [])),
        write(table1, grid_lines()),
        write(table1, lines_of_one_method()),
    ]
    (tmp_path / "paper.tex").write_text(DOCUMENT + "\n".join(texts) + r"\end{document}")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert "Overfull" not in done.stdout, done.stdout
