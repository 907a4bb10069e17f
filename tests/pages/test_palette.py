"""Colours that everybody can read, on a light page and on a dark one."""

import pytest

from fullmatch.pages.palette import DARK, LIGHT, SERIES, follow_theme, variables


def brightness(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    """4.5 for text and 3 for graphics, as the accessibility guidelines ask."""
    for ground in ("paper", "panel"):
        for role in ("ink", "faint", "link", "warn"):
            assert contrast(palette[role], palette[ground]) >= 4.5, (role, ground)
    for role in SERIES:
        assert contrast(palette[role], palette["paper"]) >= 3, role


def test_both_themes_have_every_role_once() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)  # else a drawing could not be themed
    assert f"--ink: {DARK['ink']};" in variables(DARK)


def test_drawings_follow_the_theme() -> None:
    drawn = f"<path style='fill: none; stroke: {LIGHT['one']}'/><text>{LIGHT['one']}</text>"
    themed = f"<path style='fill: none; stroke: var(--one)'/><text>{LIGHT['one']}</text>"
    assert follow_theme(drawn) == themed
    assert follow_theme("fill: #123456") == "fill: #123456"
