"""The frame of every page: one file that needs no other file and may load none."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined, Template

import fullmatch
from fullmatch.errors import UserError
from fullmatch.pages.markup import Markup
from fullmatch.pages.palette import DARK, LIGHT, css_variables
from fullmatch.storage.atomic import explained_errors, write_text

GENERATOR = '<meta name="generator" content="fullmatch report">'  # in every page, old ones too
NONE: Mapping[str, str] = {}
HEAD_SIZE = 4000  # bytes at the start of a page in which that line stands


class Section(NamedTuple):
    """A part of a page with a heading; `key` is its id, which links lead to."""

    key: str
    heading: str
    content: Markup
    script: str = ""  # JavaScript that it needs
    style: str = ""  # CSS that it needs


def content_security_policy(scripts: Sequence[str], sources: Mapping[str, str] = NONE) -> str:
    """Nothing may be loaded, and only these scripts may run; `sources` allow more, by kind."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
        "script-src": " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(
        f"{kind} {places} {sources.get(kind, '')}".rstrip() for kind, places in allowed.items()
    )


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    policy: Callable[[Sequence[str]], str] = content_security_policy,
) -> str:
    """A whole page; sections without content are left out. `policy` says what it may do."""
    sections = [section for section in sections if section.content]
    scripts = [resource("theme.js"), *(each.script for each in sections if each.script)]
    return load_template("fullmatch.pages", "frame.html.j2").render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        policy=policy(scripts),
        generator=Markup(GENERATOR),
        style=Markup(stylesheet() + "".join(section.style for section in sections)),
        scripts=[Markup(script) for script in scripts],
        version=fullmatch.__version__,
    )


@cache
def load_template(package: str, name: str) -> Template:
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    return environment.from_string(resource(name, package))


def stylesheet() -> str:
    dark = css_variables(DARK)
    return (
        f":root {{ color-scheme: light; {css_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
        f"{resource('style.css')}"
    )


def resource(name: str, package: str = "fullmatch.pages") -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def write_page(path: Path, text: str) -> None:
    """Write a page, or replace one that fullmatch wrote; any other file is left alone."""
    require_replaceable(path)
    write_text(path, text)


def require_replaceable(path: Path) -> None:
    """`UserError` if a file is there that fullmatch did not write; a huge one is not read."""
    with explained_errors(path):
        if path.is_symlink() and not path.exists():  # it would put a file anywhere
            raise UserError(f"{path} is a link that leads nowhere; choose another file with --out")
        if not path.exists():
            return
        if not path.is_file():  # opening a pipe would wait forever
            raise UserError(
                f"cannot write {path}: it is not a regular file; choose another with --out"
            )
        with path.open("rb") as file:
            if GENERATOR.encode() not in file.read(HEAD_SIZE):
                raise UserError(
                    f"{path} exists and is not a fullmatch report; choose another file with --out"
                )
