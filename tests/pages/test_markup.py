"""HTML from nested calls is always escaped."""

from fullmatch.pages.markup import Markup, join, tag


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<b>&") == "<p>&lt;b&gt;&amp;</p>"
    assert tag("a", "x", title='"><script>') == '<a title="&#34;&gt;&lt;script&gt;">x</a>'


def test_markup_is_not_escaped_again() -> None:
    inner = tag("b", 1)
    assert isinstance(join([inner, "<"]), Markup)
    assert join([inner, "<"]) == "<b>1</b>&lt;"


def test_attributes_by_their_html_names() -> None:
    element = tag("div", class_="a", aria_label="b", hidden=True, id=None, draggable=False)
    assert element == '<div class="a" aria-label="b" hidden></div>'
    assert tag("img", alt="a picture") == '<img alt="a picture">'
