"""A labeling page that is served during a test."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from fullmatch.inference.first_suggestion import suggest_typical
from fullmatch.labeling.label_table import LabelTable, default_table, list_pictures
from fullmatch.labeling.queue import LabelQueue
from fullmatch.labeling.server import LabelServer, create_server


@contextmanager
def serving(home: Path, number: int = 5, classes: Sequence[str] = ()) -> Iterator[LabelServer]:
    table = LabelTable(default_table(home), list_pictures(home))
    table.add_classes(classes)
    suggestions = suggest_typical(table.unlabeled(), number)
    server = create_server(LabelQueue(table, suggestions.pictures))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
