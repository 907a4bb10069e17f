"""HTML built from nested calls; whatever is not markup already is escaped, without exception."""

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is HTML already."""


def escape(text: object) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(str(text)))


def join(parts: Iterable[object]) -> Markup:
    return Markup("".join(map(escape, parts)))


def tag(name: str, /, *children: object, **attributes: str | bool | None) -> Markup:
    """An element; `class_` is the attribute class, `aria_label` is aria-label, None leaves out."""
    given = (
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    opening = f"<{name}{''.join(given)}>"
    if name in ("meta", "img", "br", "link"):
        return Markup(opening)
    return Markup(f"{opening}{join(children)}</{name}>")
