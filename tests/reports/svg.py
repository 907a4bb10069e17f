"""The SVG of charts, parsed and checked."""

import re
from xml.etree import ElementTree

from fullmatch.reports.chart import Chart


def parse_svg(chart: Chart | None, prefix: str = "it") -> ElementTree.Element:
    assert chart is not None
    return ElementTree.fromstring(chart.to_svg(prefix))


def texts(svg: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()).strip() for element in svg.iter() if element.tag == "text"]


def check_chart(chart: Chart | None) -> None:
    """What holds for every chart in a page."""
    svg = parse_svg(chart)
    assert chart is not None
    assert chart.title
    assert chart.summary.endswith(".")
    assert svg.get("role") == "img"
    assert chart.summary in (svg.get("aria-label") or "")
    assert "width" not in svg.attrib  # the page decides
    text = chart.to_svg("it")
    assert "<metadata" not in text
    assert "<style" not in text
    assert not re.findall(r"(?:fill|stroke): #\w+", text), "every color has a role"
