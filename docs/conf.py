"""Settings of the documentation site; `make docs` builds it."""

import re
import runpy
from pathlib import Path
from typing import Any

from docutils import nodes

import fullmatch
import fullmatch.data

project = "fullmatch"
author = "The fullmatch authors"
copyright = "The fullmatch authors, Apache-2.0"
version = release = fullmatch.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_google_docstring = False
napoleon_use_ivar = True
# Notes are parts of other pages, and not pages of their own.
exclude_patterns = ["_build", "**/*.notes.md"]

# Notebooks are shown with the outputs stored in them (`make notebooks`), and load no scripts.
nb_execution_mode = "off"
nb_ipywidgets_js = {}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

SHORT_CELL = 17  # characters
LONGEST_FLAG, LONGEST_WORD = 20, 36

html_theme = "furo"
html_title = f"fullmatch {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# Docstrings put code into single backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 80
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

# Some names are imported when they are asked for; autodoc looks for real ones.
for _module in (fullmatch, fullmatch.data):
    for _name in _module.__all__:
        setattr(_module, _name, getattr(_module, _name))


def escape_docstring(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text with code in backticks; stars and underscores mean themselves.

    Fields of a named tuple have a docstring that says nothing but their position.
    """
    if re.fullmatch(r"Alias for field number \d+", "".join(lines).strip()):
        lines.clear()
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = line.split("`")
        parts[::2] = [re.sub(r"(?<!\\)([*|]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[number] = "`".join(parts)


def skip_generated(
    app: Any, what: str, name: str, obj: object, skip: bool, options: Any
) -> bool | None:
    """scikit-learn adds methods about metadata to every estimator."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def add_commands(app: Any, page: str, source: list[str]) -> None:
    """The page of commands is the help of the program."""
    if page == "commands":
        help_pages = runpy.run_path(str(Path(__file__).with_name("command_help.py")))
        source[0] += help_pages["render_commands"]()


def mark_short_cells(app: Any, tree: nodes.document, page: str) -> None:
    """Numbers and short names in tables stay on one line; the table scrolls where it must."""
    for cell in tree.findall(nodes.entry):
        if len(cell.astext()) <= SHORT_CELL:
            cell["classes"].append("short")


def mark_code(app: Any, tree: nodes.document, page: str) -> None:
    """Say where code in a line may break: not in a flag such as `--labels`, but in a long path."""
    for code in tree.findall(nodes.literal):
        words = code.astext().split()
        longest = max(map(len, words), default=0)
        if longest > LONGEST_WORD:
            code["classes"].append("long")
        elif longest <= LONGEST_FLAG and any(word.startswith("--") for word in words):
            code["classes"].append("flag")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_docstring, priority=600)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("source-read", add_commands)
    app.connect("doctree-resolved", mark_short_cells)
    app.connect("doctree-resolved", mark_code)
