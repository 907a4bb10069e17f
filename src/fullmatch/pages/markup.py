"""HTML elements from nested calls; text that is not markup yet is escaped."""

from collections.abc import Iterable

from markupsafe import Markup, escape

VOID = ("img", "input")  # elements without an end

__all__ = ["Markup", "escape", "join", "tag"]


def join(parts: Iterable[object]) -> Markup:
    return Markup().join(map(escape, parts))


def tag(name: str, /, *children: object, **attributes: str | bool | None) -> Markup:
    """One element; `class_` and `aria_label` become class and aria-label, None is left out."""
    pairs = (
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    opening = f"<{name}{''.join(pairs)}>"
    return Markup(opening if name in VOID else f"{opening}{join(children)}</{name}>")
