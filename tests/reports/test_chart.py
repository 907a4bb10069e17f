"""Charts in a page: missing ones leave no trace, and text is escaped."""

from fullmatch.reports.chart import Chart, make_panel, render_charts, shorten


def test_missing_charts_leave_no_trace() -> None:
    assert not render_charts([None, None], "x")
    chart = Chart(make_panel()[0], "A <title>", "Some words.")
    rendered = render_charts([None, chart], "x")
    assert rendered.count("<figure>") == 1
    assert "A &lt;title&gt;" in rendered


def test_long_texts_are_shortened() -> None:
    assert shorten("a" * 14) == "a" * 14
    assert shorten("a" * 15) == "a" * 13 + "…"
