"""The frame of every page: one file that needs nothing else, and may load nothing else."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import fullmatch
from fullmatch.errors import UserError
from fullmatch.pages.markup import Markup, join, tag
from fullmatch.pages.palette import DARK, LIGHT, variables
from fullmatch.report.drawing import Drawing
from fullmatch.storage import atomic as writing

MARK = '<meta name="generator" content="fullmatch report">'


def page(title: str, subtitle: str, sections: Sequence[tuple[str, str, Markup]]) -> str:
    """A whole page; a section is its id, its heading and its content."""
    links = (tag("li", tag("a", name, href=f"#{key}")) for key, name, _ in sections)
    body = [
        tag("a", "Skip to the result", href="#content", class_="skip"),
        tag(
            "header",
            tag("div", tag("h1", title), tag("p", subtitle, class_="faint")),
            tag("button", "Dark theme", id="theme", type="button", hidden=True),
            tag("nav", tag("ul", *links), aria_label="Sections"),
        ),
        tag("main", *(section(*each) for each in sections), id="content", tabindex="-1"),
        tag("footer", f"Written by fullmatch {fullmatch.__version__}."),
        tag("script", Markup(resource("theme.js"))),
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(MARK),
        tag("title", title),
        tag("style", Markup(style())),
    ]
    whole = tag("html", tag("head", *head), tag("body", *body), lang="en")
    return f"<!doctype html>\n{whole}\n"


def section(key: str, name: str, content: Markup) -> Markup:
    heading = tag("h2", name, id=f"{key}-heading")
    return tag("section", heading, content, id=key, aria_labelledby=f"{key}-heading")


def shown(drawings: Iterable[Drawing | None], prefix: str) -> Markup:
    """Drawings side by side where there is room, each with its words below."""
    figures = [
        tag(
            "figure",
            tag("h3", drawing.title),
            drawing.svg(f"{prefix}-{number}"),
            tag("figcaption", drawing.words),
        )
        for number, drawing in enumerate(drawings)
        if drawing is not None
    ]
    return tag("div", *figures, class_="grid") if figures else join([])


def style() -> str:
    dark = variables(DARK)
    return (
        f":root {{ color-scheme: light; {variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
        f"{resource('style.css')}"
    )


def policy() -> str:
    """Nothing from anywhere, and no script but our own."""
    digest = base64.b64encode(hashlib.sha256(resource("theme.js").encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    return (files("fullmatch.report") / name).read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    """Replace an earlier report at once; refuse to replace anything else."""
    with writing.told(path):
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace")[:4000]:
            raise UserError(f"{path} exists and is no report; name another file with --out")
    writing.write(path, text)
