"""The page around the sections: what it may load, and which files it may replace."""

import base64
import hashlib
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.pages.markup import tag
from fullmatch.report.drawing import Drawing, panel
from fullmatch.report.frame import page, shown, write
from tests.report.reading import read


def test_a_whole_page() -> None:
    text = page("<title>", "sub & title", [("one", "Öne", tag("p", "hello"))])
    seen = read(text)
    assert text.startswith("<!doctype html>") and "&lt;title&gt;" in text
    assert "sub & title" in seen.text and "hello" in seen.text
    assert {"#one", "#content"} == set(seen.values("href"))


def test_only_its_own_script_may_run_and_nothing_may_load() -> None:
    text = page("title", "", [])
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m["content"] for m in read(text).named("meta") if "http-equiv" in m)
    assert policy is not None and f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';") and "http" not in policy


def test_drawings_that_are_missing_leave_no_trace() -> None:
    assert not shown([None, None], "x")
    drawing = Drawing(panel()[0], "A <title>", "Some words.")
    found = shown([None, drawing], "x")
    assert found.count("<figure>") == 1 and "A &lt;title&gt;" in found


def test_reports_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write(path, page("one", "", []))
    write(path, page("two", "", []))
    assert "<title>two</title>" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    path.write_text("<html>my own page</html>")
    with pytest.raises(UserError, match="is no report"):
        write(path, page("three", "", []))
    assert "my own page" in path.read_text()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*; .*name another"):
        write(tmp_path / "no" / "report.html", "")
    with pytest.raises(UserError, match="cannot write"):
        write(tmp_path, "")
