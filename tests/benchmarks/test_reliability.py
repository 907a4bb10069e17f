"""The page of promises is up to date, and every test it names is there."""

import ast
from pathlib import Path

from benchmarks.promises import PROMISES
from benchmarks.reliability import PAGE, ROOT, render_page, summarize

TESTS = Path(__file__).parents[1]


def test_the_page_is_up_to_date() -> None:
    message = "run: python -m benchmarks.reliability"
    assert PAGE.read_text(encoding="utf-8") == render_page(), message


def test_every_promise_has_its_test() -> None:
    for promise in PROMISES:
        file, _, name = promise.test.partition("::")
        if not name:
            assert (ROOT / file).exists(), file
            continue
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in functions, promise.test


def test_figures_are_added_up() -> None:
    figures: list[dict[str, object]] = [
        {"kind": "kills", "kills": 5, "bit_equal": 5},
        {"kind": "kills", "kills": 3, "bit_equal": 2},
        {"kind": "fuzz", "cases": 7, "traceback": 1, "hang": 1},
        {"kind": "soak", "bit_equal": True, "seconds_alone": 5, "seconds_troubled": 9},
    ]
    assert summarize("kills", figures) == "7 of 8 kills bit-equal"
    assert summarize("fuzz", figures) == "7 damaged files, 2 tracebacks, hangs or code run"
    assert summarize("soak", figures) == "1 of 1 bit-equal, 14 s"
