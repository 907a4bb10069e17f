"""The command line: every command is a file in `commands`, and one line here."""

import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import NoReturn

from cyclopts import App, CycloptsError

import fullmatch
from fullmatch.cli.commands.bench import bench
from fullmatch.cli.commands.card import card
from fullmatch.cli.commands.check import check
from fullmatch.cli.commands.evaluate import evaluate
from fullmatch.cli.commands.export import export
from fullmatch.cli.commands.label import label
from fullmatch.cli.commands.listing import list_
from fullmatch.cli.commands.predict import predict
from fullmatch.cli.commands.report import report
from fullmatch.cli.commands.reproduce import app as reproduce
from fullmatch.cli.commands.resume import resume
from fullmatch.cli.commands.rounds import rounds
from fullmatch.cli.commands.suggest import suggest
from fullmatch.cli.commands.train import train
from fullmatch.errors import UserError

app = App(
    name="fullmatch",
    version=fullmatch.__version__,
    result_action="return_value",
    help="Semi-supervised image classification: a few labels, many pictures, one classifier.",
)
app.command(check)
app.command(train)
app.command(resume)
app.command(evaluate)
app.command(list_, name="list")
app.command(predict)
app.command(suggest)
app.command(label)
app.command(export)
app.command(card)
app.command(report)
app.command(reproduce)
app.command(bench)
app.command(rounds)


def main(argv: list[str] | None = None) -> None:
    """Every mistake of a user ends in one line and exit code 2."""
    words = sys.argv[1:] if argv is None else argv
    # To be asked to end, as batch systems do, is no different from Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    answered(lambda: alone_or_together(words))


def alone_or_together(words: list[str]) -> None:
    """Alone, unless torchrun started several of us."""
    size = os.environ.get("WORLD_SIZE") or "1"
    if not size.isdecimal():
        raise UserError(
            f"WORLD_SIZE is {size!r}, expected a number of processes; start them with torchrun, "
            "or unset WORLD_SIZE"
        )
    if int(size) > 1:
        from fullmatch.experiment.team import command

        command(lambda: answered(lambda: carry_out(words)))
    else:
        carry_out(words)


def carry_out(words: list[str]) -> None:
    refuse_empty(words)
    app(words, exit_on_error=False, print_error=False)
    sys.stdout.flush()  # else a closed pipe is noticed only when Python ends


def answered(work: Callable[[], None]) -> None:
    """Does something, and makes of whatever goes wrong a line and an exit code."""
    try:
        work()
    except (CycloptsError, UserError) as error:
        print(f"fullmatch: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        seen_enough()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich makes its own exit of it
            seen_enough()
        raise


def seen_enough() -> NoReturn:
    """Whoever reads our output, such as `head`, has closed it: end as other programs do."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(141) from None


def refuse_empty(words: list[str]) -> None:
    """An empty word, as a shell makes of an unset variable, would count as the current folder."""
    for before, word in pairwise(["", *words]):
        name, equals, value = word.partition("=")
        if not word:
            name = before if before.startswith("-") else "an argument"
        elif value or not equals or not name.startswith("--"):
            continue
        raise UserError(f"{name} is empty; write something there, or leave it out")
