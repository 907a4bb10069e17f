"""Search text in tests, where a pattern without a match would make a test pass for no reason."""

import re


def find_all(pattern: str, text: str, flags: re.RegexFlag = re.MULTILINE) -> list[str]:
    """All matches, at least one; by default `^` and `$` match at every line."""
    matches: list[str] = re.findall(pattern, text, flags)
    assert matches, f"nothing matches {pattern}"
    return matches


def find_blocks(language: str, text: str) -> list[str]:
    """The code blocks of a language in Markdown, at least one."""
    return find_all(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
