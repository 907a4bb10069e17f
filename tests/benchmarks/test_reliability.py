"""The page of promises is up to date, and every test it names is there."""

import ast
from pathlib import Path

from benchmarks.reliability import PAGE, PROMISES, render_page

TESTS = Path(__file__).parents[1]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), "run benchmarks/reliability.py"


def test_every_promise_has_its_test() -> None:
    for _, _, test in PROMISES:
        file, name = test.split("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test
