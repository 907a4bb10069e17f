"""Writes the table of methods in algorithms.md: python docs/algorithm_table.py.

Views, memory, ratio and full come from the specs. What is written by hand in the other columns
stays; a method that has no row gets one.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from fullmatch.algorithms import ALGORITHMS, SupportsFull
from fullmatch.core import About, SpecLike, Views, as_spec

PAGE = Path(__file__).with_name("algorithms.md")
BEGIN, END = "|---|---|---|---|---|---|---|---|---|\n", "\n### What the two losses"


def render(page: str, algorithms: Mapping[str, type[SpecLike]]) -> str:
    """The page with one row per algorithm, in their order."""
    before, begin, rest = page.partition(BEGIN)
    rows, end, after = rest.partition(END)
    written = {}
    for line in rows.splitlines():
        name, _, *cells = [cell.strip() for cell in line.split("|")[1:-1]]
        written[name.strip("`")] = cells[:4]
    table = [render_row(name, spec(), written.get(name)) for name, spec in algorithms.items()]
    return "".join([before, begin, *table, end, after])


def render_row(name: str, spec: SpecLike, written: list[str] | None) -> str:
    """A row; `written` are the cells on label, selection, loss and what the method adds."""
    described = as_spec(spec)
    about = described.about or About("-", 0, "-", "-")
    cells = [
        f"`{name}`",
        describe_views(described.views),
        *(written or ["-", "-", "-", about.idea]),
        "-" if about.memory == "none" else about.memory,
        str(spec.ratio),
        "yes" if isinstance(spec, SupportsFull) else "no",
    ]
    return f"| {' | '.join(cells)} |\n"


def describe_views(views: Views | None) -> str:
    """Such as 'weak, 2 strong'."""
    counts = Counter(() if views is None else views.unlabeled)
    return ", ".join(f"{n} {view}" if n > 1 else view for view, n in counts.items()) or "none"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), ALGORITHMS), encoding="utf-8")
