"""The snippets of the page on losses run in order and print what it shows."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "losses.md"
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def test_snippets_print_what_the_page_shows() -> None:
    names: dict[str, object] = {}
    shown = 0
    for code, expected in SNIPPET.findall(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == expected
        shown += bool(expected)
    assert shown >= 3
