"""A page as a strict reader sees it: every element closed, every id unique, every link answered."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "img", "br", "link"}
FOREIGN = {"g", "path", "use", "image", "rect"}  # may close themselves inside SVG


@dataclass
class Seen:
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\xa0", " ").split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [v for _, found in self.tags if (v := found.get(attribute)) is not None]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen, self.open = Seen(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in FOREIGN, tag
        self.seen.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.seen.words.append(data)


def read(page: str) -> Seen:
    """The page's elements and words, once it has passed every check."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    seen = reader.seen
    ids = seen.values("id")
    assert len(ids) == len(set(ids))
    inner = {address[1:] for address in seen.values("href") if address.startswith("#")}
    assert inner | set(seen.values("aria-labelledby")) <= set(ids)
    assert all(a.startswith("#") for link in seen.named("a") if (a := link["href"]) is not None)
    assert all((i["src"] or "").startswith("data:image/png;") for i in seen.named("img"))
    assert all(image.get("alt") for image in seen.named("img"))
    levels = [int(name[1]) for name, _ in seen.tags if name in ("h1", "h2", "h3")]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(seen.named(landmark)) == 1
    assert len(seen.named("table")) == len(seen.named("caption"))
    assert all(heading.get("scope") in ("col", "row") for heading in seen.named("th"))
    assert len(seen.named("script")) == 1 and seen.named("html")[0]["lang"] == "en"
    return seen
