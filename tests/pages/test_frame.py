"""The frame of a page: what it may load, and which files it may replace."""

import base64
import hashlib
import os
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.pages.frame import GENERATOR, HEAD_SIZE, Section, render_page, write_page
from fullmatch.pages.markup import Markup, tag
from tests.html_page import parse_page


def test_whole_page() -> None:
    sections = [Section("one", "Öne", tag("p", "hello")), Section("two", "Two", tag("p", "<b>"))]
    text = render_page("<title>", "sub & title", sections)
    page = parse_page(text)
    assert text.startswith("<!doctype html>\n<html")
    assert text.endswith("</html>\n")
    assert "<title>&lt;title&gt;</title>" in text
    assert "<h1>&lt;title&gt;</h1>" in text
    assert "sub & title" in page.text
    assert "Öne hello" in page.text
    assert "Two <b>" in page.text
    assert {"#one", "#two", "#content"} == set(page.values("href"))


def test_empty_sections_are_left_out() -> None:
    sections = [Section("one", "One", Markup("")), Section("two", "Two", tag("p", "hello"))]
    page = parse_page(render_page("title", "", sections))
    assert "One" not in page.text
    assert len(page.named("section")) == 1
    assert page.values("href") == ["#content"]  # one section needs no list of links


def test_only_its_own_script_may_run_and_nothing_may_load() -> None:
    text = render_page("title", "", [])
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m["content"] for m in parse_page(text).named("meta") if "http-equiv" in m)
    assert policy is not None
    assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_sections_bring_scripts_and_styles_of_their_own() -> None:
    with_script = Section("one", "One", tag("p", "1"), "alert(1 < 2)", ".one { color: red; }")
    without_content = Section("two", "Two", Markup(""), "alert(3)", ".two {}")
    text = render_page("title", "", [with_script, without_content])
    assert parse_page(text).scripts[1:] == ["alert(1 < 2)"]  # its hash is in the policy too
    assert ".one { color: red; }" in text
    assert "alert(3)" not in text
    assert ".two {}" not in text


def test_only_reports_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(path, render_page("one", "", []))
    write_page(path, render_page("two", "", []))
    assert "<title>two</title>" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    path.write_text("<html>my own page</html>")
    with pytest.raises(UserError, match="is not a fullmatch report"):
        write_page(path, render_page("three", "", []))
    assert "my own page" in path.read_text()


def test_reports_of_earlier_versions_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(f'<!doctype html>\n<html lang="en"><head>{GENERATOR}</head></html>')
    write_page(path, render_page("new", "", []))
    assert GENERATOR in path.read_text()[:HEAD_SIZE]
    assert "<title>new</title>" in path.read_text()


def test_unwritable_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*; .*choose another"):
        write_page(tmp_path / "no" / "report.html", "")
    with pytest.raises(UserError, match="cannot write"):
        write_page(tmp_path, "")


def test_pipes_and_huge_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(UserError, match="is not a fullmatch report"):
        write_page(path, "")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a regular file; choose another with --out"):
        write_page(path, "")
