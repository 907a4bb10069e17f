"""Drawings taken apart again."""

import re
from xml.etree import ElementTree

from fullmatch.report.drawing import Drawing


def parsed(drawing: Drawing | None, name: str = "it") -> ElementTree.Element:
    assert drawing is not None
    return ElementTree.fromstring(drawing.svg(name))


def texts(svg: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()).strip() for element in svg.iter() if element.tag == "text"]


def check(drawing: Drawing | None) -> None:
    """What holds for every drawing in a page."""
    svg = parsed(drawing)
    assert drawing is not None and drawing.title and drawing.words.endswith(".")
    assert svg.get("role") == "img" and drawing.words in (svg.get("aria-label") or "")
    assert "width" not in svg.attrib  # the page decides
    whole = drawing.svg("it")
    assert "<metadata" not in whole and "<style" not in whole
    assert not re.findall(r"(?:fill|stroke): #\w+", whole), "every colour has a role"
