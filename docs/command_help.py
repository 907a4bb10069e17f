"""The help of the command line as reStructuredText for the site, and as a man page (`make man`)."""

import re
import sys
from pathlib import Path

from docutils.core import publish_string

import fullmatch
from fullmatch.cli.app import app

ABOUT = "semi-supervised image classification"
# Above the commands; the writer makes the header and the footer of the man page from it.
HEAD = f"""
=========
fullmatch
=========

{"-" * len(ABOUT)}
{ABOUT}
{"-" * len(ABOUT)}

:Manual section: 1
:Manual group: User commands
:Version: fullmatch {fullmatch.__version__}

SYNOPSIS
========

``fullmatch`` COMMAND [OPTIONS]

``fullmatch`` COMMAND ``--help``

DESCRIPTION
===========

"""
FOOT = """
EXIT STATUS
===========

0 is success, 2 a mistake that one line explains, 130 an interrupt, 141 a closed pipe.
"""


def render_commands() -> str:
    """Every command and its flags, without the title."""
    text = app.generate_docs("rst").partition("COMMAND\n\n")[2]
    text = re.sub(r"\.\. contents::.*\n(   .*\n)+", "", text)
    # Started by `python -m sphinx`, the generator takes that for a part of the command.
    text = re.sub(r"^(    fullmatch .*?) -m \S+", r"\1", text, flags=re.MULTILINE)
    # A star is one in a pattern of files, except around the words that the generator makes bold.
    bold = r"\*\*(\w+:?)\*\*"
    text = re.sub(bold, "\x00\\1\x00", text).replace("*", r"\*")
    return re.sub(r"\x00([^\x00]*)\x00", r"**\1**", text)


def render_man_page() -> str:
    """The same as roff."""
    text = re.sub(r"^\.\. _.*:\n", "", render_commands(), flags=re.MULTILINE)
    settings = {"report_level": 2, "halt_level": 2, "output_encoding": "unicode"}
    return str(publish_string(HEAD + text + FOOT, writer="manpage", settings_overrides=settings))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render_man_page(), encoding="utf-8")
    print(f"Read it with: man -l {target}")
