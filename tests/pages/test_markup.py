"""Escaping is not left to anybody's care."""

from fullmatch.pages.markup import Markup, join, tag


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<b>&") == "<p>&lt;b&gt;&amp;</p>"
    assert tag("a", "x", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;">x</a>'


def test_markup_is_kept_and_stays_markup() -> None:
    inner = tag("b", 1)
    assert isinstance(join([inner, "<"]), Markup)
    assert join([inner, "<"]) == "<b>1</b>&lt;"


def test_attributes_by_their_html_names() -> None:
    found = tag("div", class_="a", aria_label="b", hidden=True, id=None, draggable=False)
    assert found == '<div class="a" aria-label="b" hidden></div>'
    assert tag("meta", name="viewport") == '<meta name="viewport">'
