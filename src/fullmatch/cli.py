"""The command line: every command is a file in `commands`, and one line here."""

import os
import sys

from cyclopts import App, CycloptsError

import fullmatch
from fullmatch.commands.bench import bench
from fullmatch.commands.card import card
from fullmatch.commands.check import check
from fullmatch.commands.evaluate import evaluate
from fullmatch.commands.export import export
from fullmatch.commands.label import label
from fullmatch.commands.listing import list_
from fullmatch.commands.predict import predict
from fullmatch.commands.report import report
from fullmatch.commands.reproduce import app as reproduce
from fullmatch.commands.resume import resume
from fullmatch.commands.rounds import rounds
from fullmatch.commands.suggest import suggest
from fullmatch.commands.train import train
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
    try:
        app(sys.argv[1:] if argv is None else argv, exit_on_error=False, print_error=False)
    except (CycloptsError, UserError) as error:
        print(f"fullmatch: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
