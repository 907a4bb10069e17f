"""Runs commands as an installation without extras would: their packages cannot be imported.

    python -m tests.packaging.base_installation PACKAGE... -- COMMANDS

COMMANDS is a JSON list of command lines. It prints a JSON list of pairs: exit code, error output.
"""

import contextlib
import io
import json
import sys


def run(command: list[str]) -> tuple[int, str]:
    from fullmatch.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(command)
        except SystemExit as end:
            return int(end.code or 0), errors.getvalue()
    return 0, errors.getvalue()


if __name__ == "__main__":
    at = sys.argv.index("--")
    # An import of such a module fails, and it is not found.
    sys.modules |= dict.fromkeys(sys.argv[1:at])  # type: ignore[arg-type]
    print(json.dumps([run(command) for command in json.loads(sys.argv[at + 1])]))
