"""A strict HTML parser for pages: elements are closed, ids are unique, links have targets."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "img", "input", "br", "link"}
SELF_CLOSING = {"g", "path", "use", "image", "rect"}  # in SVG only


@dataclass
class ParsedPage:
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)  # that a browser would run

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).replace("\xa0", " ").split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [value for _, each in self.tags if (value := each.get(attribute)) is not None]


class Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page, self.open = ParsedPage(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script" and "type" not in dict(attrs):
            self.page.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSING, tag
        self.page.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and "type" not in self.page.tags[-1][1]:
            self.page.scripts[-1] += data
        elif self.open and self.open[-1] not in ("style", "script"):
            self.page.texts.append(data)


def parse_page(text: str) -> ParsedPage:
    """The elements and texts of a page that passes every check."""
    parser = Parser()
    parser.feed(text)
    parser.close()
    assert not parser.open
    page = parser.page
    check_links(page)
    check_images(page)
    check_headings(page)
    for landmark in ("header", "main", "footer"):
        assert len(page.named(landmark)) == 1
    assert len(page.named("nav")) == (len(page.named("section")) > 1)
    assert len(page.named("table")) == len(page.named("caption"))
    assert all(heading.get("scope") in ("col", "row") for heading in page.named("th"))
    assert page.named("html")[0]["lang"] == "en"
    check_scripts(page)
    return page


def check_scripts(page: ParsedPage) -> None:
    """Its own scripts may run, and no others; data in the page is JSON."""
    policy = next(meta["content"] or "" for meta in page.named("meta") if "http-equiv" in meta)
    digests = [hashlib.sha256(script.encode()).digest() for script in page.scripts]
    hashes = [base64.b64encode(digest).decode() for digest in digests]
    assert hashes
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    kinds = [script["type"] for script in page.named("script") if "type" in script]
    assert set(kinds) <= {"application/json"}
    assert len(kinds) + len(hashes) == len(page.named("script"))


def check_links(page: ParsedPage) -> None:
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = {address[1:] for address in page.values("href") if address.startswith("#")}
    assert targets | set(page.values("aria-labelledby")) <= set(ids)
    assert all((link["href"] or "").startswith("#") for link in page.named("a"))


def check_images(page: ParsedPage) -> None:
    images = page.named("img")
    kinds = ("data:image/png;", "data:image/jpeg;")
    assert all((image["src"] or "").startswith(kinds) for image in images)
    assert all(image.get("alt") for image in images)


def check_headings(page: ParsedPage) -> None:
    levels = [int(name[1]) for name, _ in page.tags if name in ("h1", "h2", "h3")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
