"""Clients that hold connections to the labeling page, or never finish a request."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullmatch.labeling.queue import LabelQueue
from fullmatch.labeling.server import LabelServer, create_server
from tests.labeling.serving import serving
from tests.own_pictures import clean_folder


@contextmanager
def limited(queue: LabelQueue, lifetime: float, connections: int) -> Iterator[LabelServer]:
    with create_server(queue, lifetime=lifetime, connections=connections) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def get_state(server: LabelServer) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", f"/{server.token}/state")
    return connection.getresponse().status


def test_a_client_that_never_ends_its_request_is_cut_off(tmp_path: Path) -> None:
    """It sends something again and again, so it is never silent."""
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    with serving(home, 4) as usual, limited(usual.queue, 0.5, 8) as server:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\n")
            ended = threading.Event()

            def drip() -> None:
                try:
                    while not ended.wait(0.05):
                        slow.sendall(b"a: b\r\n")
                except OSError:
                    pass  # it was cut off

            thread = threading.Thread(target=drip)
            thread.start()
            assert slow.recv(100) == b""  # the server has closed it
            ended.set()
            thread.join()
        assert get_state(server) == 200


def test_too_many_connections_are_closed_at_once(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    with serving(home, 4) as usual, limited(usual.queue, 20, 2) as server:
        address = ("127.0.0.1", server.server_port)
        held = [socket.create_connection(address, timeout=20) for _ in range(2)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\n")
        with socket.create_connection(address, timeout=20) as third:
            assert third.recv(100) == b""
        for each in held:
            each.close()
        while server.slots._value < 2:  # until it has noticed
            threading.Event().wait(0.01)
        assert get_state(server) == 200
