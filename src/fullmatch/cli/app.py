"""The command line: each command is a file in `commands`, and one line here."""

import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NoReturn

from cyclopts import App, CycloptsError

import fullmatch
from fullmatch.cli.commands.bench import bench
from fullmatch.cli.commands.card import card
from fullmatch.cli.commands.check import check
from fullmatch.cli.commands.evaluate import evaluate
from fullmatch.cli.commands.export import export
from fullmatch.cli.commands.label import label
from fullmatch.cli.commands.listing import list_
from fullmatch.cli.commands.pack import pack
from fullmatch.cli.commands.predict import predict
from fullmatch.cli.commands.push import push
from fullmatch.cli.commands.report import report
from fullmatch.cli.commands.reproduce import app as reproduce
from fullmatch.cli.commands.resume import resume
from fullmatch.cli.commands.rounds import rounds
from fullmatch.cli.commands.suggest import suggest
from fullmatch.cli.commands.sweep import sweep
from fullmatch.cli.commands.train import train
from fullmatch.cli.commands.verify import verify
from fullmatch.errors import UserError, escape_controls

USER_ERROR = 2  # exit codes
INTERRUPTED = 130
CLOSED_PIPE = 141
NO_MEMORY = "not enough memory; use smaller pictures (--set data.size=32)"
SHARED = ("train", "resume")  # commands that several processes run together

app = App(
    name="fullmatch",
    version=fullmatch.__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # `exit_on_error` shows how to resume
    help="Semi-supervised image classification: a few labels, many pictures, one classifier.",
)
app.command(check)
app.command(pack)
app.command(train)
app.command(resume)
app.command(evaluate)
app.command(list_, name="list")
app.command(predict)
app.command(suggest)
app.command(label)
app.command(export)
app.command(card)
app.command(push)
app.command(report)
app.command(verify)
app.command(sweep)
app.command(reproduce)
app.command(bench)
app.command(rounds)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script that completes commands and flags in your shell.

    Parameters
    ----------
    shell
        The shell that reads it, such as by: eval "$(fullmatch completion bash)"
    """
    print(app.generate_completion(shell=shell))


def main(argv: list[str] | None = None) -> None:
    """Run a command; a user's mistake ends in one line and exit code 2."""
    arguments = sys.argv[1:] if argv is None else argv
    # Signals of batch systems have the effect of Ctrl-C.
    for name in ("SIGTERM", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    exit_on_error(lambda: run_in_processes(arguments))


def run_in_processes(arguments: list[str]) -> None:
    """Run the command in this process, or together with others if torchrun started several."""
    size = os.environ.get("WORLD_SIZE") or "1"
    if not size.isdecimal():
        raise UserError(
            f"WORLD_SIZE is {size!r}, expected a number of processes; start them with torchrun, "
            "or unset WORLD_SIZE"
        )
    if int(size) > 1 and arguments[:1] and arguments[0] in SHARED:
        from fullmatch.display.several_processes import run_together

        run_together(lambda: exit_on_error(lambda: run_command(arguments)))
    elif int(os.environ.get("RANK") or 0) == 0:  # other commands need only one
        run_command(arguments)


def run_command(arguments: list[str]) -> None:
    reject_empty(arguments)
    app(arguments, exit_on_error=False, print_error=False)
    sys.stdout.flush()  # otherwise a closed pipe is noticed only when Python exits


def exit_on_error(work: Callable[[], None]) -> None:
    """Do the work; an error becomes one line and an exit code."""
    try:
        work()
    except (CycloptsError, UserError) as error:
        print(f"fullmatch: {escape_controls(' '.join(str(error).split()))}", file=sys.stderr)
        raise SystemExit(USER_ERROR) from None
    except KeyboardInterrupt as interrupt:
        if interrupt.args:  # the command that continues
            print(f"Stopped; what is done so far is saved. Resume with:\n  {interrupt.args[0]}")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        exit_for_closed_pipe()
    except MemoryError:
        print(f"fullmatch: {NO_MEMORY}", file=sys.stderr)
        raise SystemExit(USER_ERROR) from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich turns it into its own exit
            exit_for_closed_pipe()
        raise


def exit_for_closed_pipe() -> NoReturn:
    """The reader of our output, such as `head`, has closed it: exit as other programs do."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(CLOSED_PIPE) from None


def reject_empty(arguments: list[str]) -> None:
    """An empty argument, as from an unset shell variable, would mean the current folder."""
    for previous, argument in pairwise(["", *arguments]):
        name, equals, value = argument.partition("=")
        if not argument:
            name = previous if previous.startswith("-") else "an argument"
        elif value or not equals or not name.startswith("--"):
            continue
        raise UserError(f"{name} is empty; give it a value, or leave it out")
