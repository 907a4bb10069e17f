"""Colors by role, for light and dark pages; they also differ in brightness."""

import re

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1b2430",
    "faint": "#5d6875",
    "rule": "#d3d9e0",
    "link": "#0b5cad",
    "warn": "#9c3d00",
    "one": "#0072b2",
    "two": "#d55e01",
    "three": "#007a5a",
    "four": "#a8528a",
    "five": "#8a6a00",
    "six": "#4c5563",
}
DARK = {
    "paper": "#12171e",
    "panel": "#1b222b",
    "ink": "#e7ecf2",
    "faint": "#a2adba",
    "rule": "#38434f",
    "link": "#7cc0ff",
    "warn": "#ffb07a",
    "one": "#56b4e9",
    "two": "#f2994a",
    "three": "#3ccf9f",
    "four": "#e39ccb",
    "five": "#e2c044",
    "six": "#aab4c0",
}
SERIES = ("one", "two", "three", "four", "five", "six")


def css_variables(palette: dict[str, str]) -> str:
    return " ".join(f"--{role}: {color};" for role, color in palette.items())


def follow_theme(svg: str) -> str:
    """Replace the light theme's colors by CSS variables, so that the page's theme decides."""
    roles = {color: role for role, color in LIGHT.items()}

    def replace(match: re.Match[str]) -> str:
        attribute, color = match.groups()
        return f"{attribute}: var(--{roles[color]})" if color in roles else match[0]

    return re.sub(r"\b(fill|stroke): (#[0-9a-f]{6})", replace, svg)
