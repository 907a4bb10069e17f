"""A labeling page that is being served while a test looks at it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from fullmatch.inference.suggestion import typical
from fullmatch.labeling.labels import Labels, pictures_of, table_of
from fullmatch.labeling.queue import Queue
from fullmatch.labeling.server import LabelServer, server_of


@contextmanager
def serving(home: Path, number: int = 5, classes: Sequence[str] = ()) -> Iterator[LabelServer]:
    labels = Labels(table_of(home, None), pictures_of(home))
    labels.add_classes(classes)
    server = server_of(Queue(labels, typical(labels.unlabeled(), number)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
