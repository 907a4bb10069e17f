"""The files of the labeling page; it loads nothing from other servers."""

from importlib.resources import files

from fullmatch.pages.palette import DARK, LIGHT, css_variables


def content_security_policy() -> str:
    """Allow only what this server sends; no other site may frame the page."""
    return (
        "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def read_asset(name: str) -> str:
    return (files("fullmatch.labeling") / name).read_text(encoding="utf-8")


def build_style() -> str:
    dark = f":root {{ {css_variables(DARK)} }}"
    return (
        f":root {{ color-scheme: light dark; {css_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {dark} }}\n{read_asset('style.css')}"
    )


FILES = {  # path below the token -> content type and content
    "": ("text/html; charset=utf-8", read_asset("page.html")),
    "style.css": ("text/css; charset=utf-8", build_style()),
    "page.js": ("text/javascript; charset=utf-8", read_asset("page.js")),
}
