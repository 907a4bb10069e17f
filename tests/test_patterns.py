"""A pattern that matches nothing fails, so that no test passes by finding nothing to check."""

import pytest

from tests.patterns import find_all, find_blocks


def test_all_matches() -> None:
    assert find_all(r"^- (\w+)$", "- one\n- two\nthree") == ["one", "two"]
    assert find_blocks("sh", "```sh\nls\n```\n\n```python\nx\n```\n") == ["ls\n"]


def test_no_match_fails() -> None:
    with pytest.raises(AssertionError, match="nothing matches"):
        find_all("x", "abc")
    with pytest.raises(AssertionError, match="nothing matches"):
        find_blocks("sh", "```python\nx\n```\n")
