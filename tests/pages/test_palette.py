"""Colors with enough contrast, on light and on dark pages."""

import pytest

from fullmatch.pages.palette import DARK, LIGHT, SERIES, css_variables, follow_theme


def brightness(color: str) -> float:
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    """At least 4.5 for text and 3 for graphics, as the WCAG guidelines ask."""
    for background in ("paper", "panel"):
        for role in ("ink", "faint", "link", "warn"):
            assert contrast(palette[role], palette[background]) >= 4.5, (role, background)
    for role in SERIES:
        assert contrast(palette[role], palette["paper"]) >= 3, role


def test_both_themes_have_every_role_once() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)  # the color alone tells the role
    assert f"--ink: {DARK['ink']};" in css_variables(DARK)


def test_charts_follow_the_theme() -> None:
    svg = f"<path style='fill: none; stroke: {LIGHT['one']}'/><text>{LIGHT['one']}</text>"
    themed = f"<path style='fill: none; stroke: var(--one)'/><text>{LIGHT['one']}</text>"
    assert follow_theme(svg) == themed
    assert follow_theme("fill: #123456") == "fill: #123456"
