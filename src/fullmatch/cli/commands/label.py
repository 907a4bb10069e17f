"""`fullmatch label`: a page on this machine for labeling pictures."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Count, Whole
from fullmatch.errors import UserError, many

if TYPE_CHECKING:
    from fullmatch.labeling.labels import Labels


def label(
    data: Path,
    *,
    run: Path | None = None,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 50,
    port: Whole = None,
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
        A finished run, whose model then says which pictures it is unsure of.
    number
        How many pictures.
    port
        Of the page's address on this machine. [default: any that is free]
    out
        The CSV to write. [default: labels.csv beside the data]
    take
        Open no page, but take over the labels of this CSV: suggestions.csv with its column label
        filled in, or what another labeling program wrote with the columns path and label.
    open_
        Open the page in your browser at once.
    """
    from fullmatch.inference.suggestion import typical, unsure
    from fullmatch.inference.trained_run import TrainedRun
    from fullmatch.labeling.labels import Labels, pictures_of, table_of
    from fullmatch.labeling.queue import Queue
    from fullmatch.labeling.server import server_of

    data = data.expanduser()
    labels = Labels(table_of(data, out), pictures_of(data))
    for note in labels.notes:
        print(f"- {note}")
    if take is not None:
        print(f"{many(labels.take(take), 'label')} taken from {take}. {outcome(labels)}")
        return
    names = labels.unlabeled()
    if not names:
        raise UserError(f"every picture of {data} is labeled already; nothing is left to do")
    if run is None:
        found = typical(names, number)
    else:
        trained = TrainedRun(run)
        labels.add_classes(trained.classifier.classes)
        found = unsure(trained, names, number)
    if not found:
        raise UserError(f"none of the unlabeled pictures of {data} can be read; check the files")
    server = server_of(Queue(labels, found), port or 0)
    print(f"Label {many(found, 'picture')} at {server.address}")
    print(f"Labels go to {labels.table}. Stop with Ctrl-C.", flush=True)
    if open_:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(f"\n{many(server.queue.labeled(), 'new label')}. {outcome(labels, run)}")
    finally:
        server.server_close()


def outcome(labels: "Labels", run: Path | None = None) -> str:
    """Where things stand, and the next command."""
    known = labels.known()
    if len(set(known)) < 2:
        return "Label pictures of at least 2 classes, then train."
    words = ["fullmatch", "train", str(labels.table)]
    words += [] if run is None else ["--from", str(run)]
    total = len(known) + len(labels.unlabeled())
    return (
        f"{len(known):,} of {total:,} pictures are labeled in {labels.table}. "
        f"Next: {shlex.join(words)}"
    )
