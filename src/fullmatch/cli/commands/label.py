"""`fullmatch label`: a page on this machine for labeling pictures."""

import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Count, Integer
from fullmatch.display.terminal import print_line
from fullmatch.errors import UserError, pluralize

if TYPE_CHECKING:
    from fullmatch.inference.suggestion import Suggestion
    from fullmatch.labeling.label_table import LabelTable
    from fullmatch.labeling.server import LabelServer


def label(
    data: Path,
    *,
    run: Path | None = None,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 50,
    port: Integer = None,
    out: Path | None = None,
    take: Path | None = None,
    open_: Annotated[bool, Parameter(name="--open", negative=())] = False,
) -> None:
    """Label pictures in a browser, the most useful ones first, until Ctrl-C.

    Parameters
    ----------
    data
        A folder of pictures, or a CSV with path,label. Nothing in it is changed.
    run
        A finished run; the pictures that its model is unsure about come first.
    number
        How many pictures.
    port
        Port of the page's address on this machine. [default: a free one]
    out
        The CSV to write. [default: labels.csv next to the data]
    take
        Open no page, but import the labels of this CSV: suggestions.csv with its column label
        filled in, or the export of another labeling program with the columns path and label.
    open_
        Open the page in your browser.
    """
    from fullmatch.labeling.label_table import LabelTable, default_table, list_pictures
    from fullmatch.labeling.queue import LabelQueue
    from fullmatch.labeling.server import create_server

    data = data.expanduser()
    table = LabelTable(out or default_table(data), list_pictures(data))
    for note in table.notes:
        print_line(f"- {note}")
    if take is not None:
        print_line(
            f"{pluralize(table.import_labels(take), 'label')} taken from {take}. {next_step(table)}"
        )
        return
    pictures = choose_pictures(data, table, run, number)
    server = create_server(LabelQueue(table, pictures), port or 0)
    serve(server, open_browser=open_)
    labeled = pluralize(server.queue.count_labeled(), "new label")
    print_line("")
    print_line(f"{labeled}. {next_step(table, run)}")


def choose_pictures(
    data: Path, table: "LabelTable", run: Path | None, number: int
) -> "list[Suggestion]":
    """The unlabeled pictures to show, best first; the classes of the run's model are added."""
    from fullmatch.cli.changes import noting_changes
    from fullmatch.display.stages import show_stages
    from fullmatch.inference.first_suggestion import suggest_typical
    from fullmatch.inference.suggestion import suggest_uncertain
    from fullmatch.inference.trained_run import TrainedRun

    names = table.unlabeled()
    if not names:
        raise UserError(f"every picture of {data} is labeled already; there is nothing to label")
    if run is None:
        with show_stages() as stages:
            suggestions = suggest_typical(
                names, number, labeled=table.labeled(), progress=stages.begin("features")
            )
    else:
        with noting_changes(run):
            trained = TrainedRun(run)
            table.add_classes(trained.classifier.classes)
            suggestions = suggest_uncertain(trained, names, number)
    if not suggestions.pictures:
        raise UserError(f"none of the unlabeled pictures of {data} can be read; check the files")
    print_line(f"- The order is by {suggestions.basis}.")
    return suggestions.pictures


def serve(server: "LabelServer", *, open_browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    print_line(f"Label {pluralize(server.queue.pictures, 'picture')} at {server.address}")
    print_line(f"Labels go to {server.queue.table.path}. Stop with Ctrl-C.")
    sys.stdout.flush()
    if open_browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return
    finally:
        server.server_close()


def next_step(table: "LabelTable", run: Path | None = None) -> str:
    """How much is labeled, and the next command."""
    labels = table.labels()
    if len(set(labels)) < 2:
        return "Label pictures of at least 2 classes, then train."
    command = ["fullmatch", "train", str(table.path)]
    command += [] if run is None else ["--from", str(run)]
    total = len(labels) + len(table.unlabeled())
    return (
        f"{len(labels):,} of {total:,} pictures are labeled in {table.path}. "
        f"Next: {shlex.join(command)}"
    )
