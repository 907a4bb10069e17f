"""The labeling page's files; it loads nothing from anywhere else."""

from importlib.resources import files

from fullmatch.pages.palette import DARK, LIGHT, variables


def policy() -> str:
    """Only what this server sends; no other site may frame the page."""
    return (
        "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def resource(name: str) -> str:
    return (files("fullmatch.labeling") / name).read_text(encoding="utf-8")


def style() -> str:
    dark = f":root {{ {variables(DARK)} }}"
    return (
        f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {dark} }}\n{resource('style.css')}"
    )


FILES = {  # by their address below the token: kind and content
    "": ("text/html; charset=utf-8", resource("page.html")),
    "style.css": ("text/css; charset=utf-8", style()),
    "page.js": ("text/javascript; charset=utf-8", resource("page.js")),
}
