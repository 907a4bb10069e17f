"""The server answers who knows the token, on this machine, and nobody else."""

import http.client
import io
import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fullmatch.errors import UserError
from fullmatch.labeling.server import LabelServer, server_of
from tests.labeling.served import serving
from tests.own_pictures import clean_folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabelServer]:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    with serving(home, 6) as found:
        yield found


def ask(
    server: LabelServer,
    path: str,
    body: object = None,
    *,
    token: str | None = None,
    method: str | None = None,
    **headers: str,
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    given = {"Content-Type": "application/json"} if body is not None else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    address = f"/{server.token if token is None else token}/{path}"
    connection.request(method or ("GET" if body is None else "POST"), address, content, given)
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def told(server: LabelServer, path: str, body: object = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(server, path, body)[1])
    return found


def test_listens_on_this_machine_alone(server: LabelServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    with server_of(server.queue) as another:
        assert len(server.token) == 32 and another.token != server.token
    with pytest.raises(UserError, match="cannot listen on port"):
        server_of(server.queue, server.server_port)
    with pytest.raises(UserError, match="cannot listen on port"):
        server_of(server.queue, 99999)


@pytest.mark.parametrize("path", ["", "page.js", "style.css", "state", "picture/0"])
def test_every_answer_is_guarded(server: LabelServer, path: str) -> None:
    status, content, headers = ask(server, path)
    assert status == 200 and content
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert not any(name.lower().startswith("access-control") for name in headers)
    for wrong in ("", "x" * 32, server.token[:-1], server.token.swapcase(), "%s"):
        status, content, headers = ask(server, path, token=wrong)
        assert status == 403 and server.token.encode() not in content
    assert ask(server, path, Host="evil.example")[0] == 403
    assert ask(server, path, Host=f"evil.example:{server.server_port}")[0] == 403
    assert ask(server, path, Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("path", ["label", "skip", "undo", "class"])
def test_changes_need_the_token_and_come_from_here(server: LabelServer, path: str) -> None:
    body = {"number": 0, "label": "grass", "name": "owl"}
    before = told(server, "state")
    assert ask(server, path, body, token="wrong")[0] == 403
    assert ask(server, path, body, Host="evil.example")[0] == 403
    assert ask(server, path, body, Origin="http://evil.example")[0] == 403
    assert ask(server, path, body, Origin="null")[0] == 403
    assert ask(server, path, body, Content_Type="text/plain")[0] == 415
    assert ask(server, path)[0] == 404  # a link changes nothing
    assert ask(server, path, body, method="OPTIONS")[0] == 501
    assert told(server, "state") == before
    assert not server.queue.labels.table.exists()


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "picture/../../labels.csv",
        "picture/%2e%2e/state",
        "picture//etc/passwd",
        "picture/6",
        "picture/-1",
        "picture/0/",
        "picture/1e0",
        "picture/٣",
        "picture/" + "9" * 30,
        "page.html",
        "page.js?x",
        "server.py",
        "picture/",
    ],
)
def test_pictures_by_number_and_nothing_else(server: LabelServer, path: str) -> None:
    raw = path.encode()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        head = f"GET /{server.token}/".encode() + raw + b" HTTP/1.0\r\n"
        connection.sendall(head + f"Host: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.split()[1] == b"404", answer[:100]


def test_a_picture_is_a_picture(server: LabelServer) -> None:
    _, content, headers = ask(server, "picture/1")
    assert headers["Content-Type"] == "image/jpeg"
    assert Image.open(io.BytesIO(content)).size == (24, 16)
    Path(server.queue.pictures[1].name).write_text("<script>alert(1)</script>")
    status, content, _ = ask(server, "picture/1")
    assert status == 404 and b"script" not in content
    os.unlink(server.queue.pictures[1].name)
    assert ask(server, "picture/1")[0] == 404


def test_labels_reach_the_table(server: LabelServer) -> None:
    state = told(server, "state")
    assert (state["number"], state["total"]) == (0, 6)
    assert state["classes"] == ["brick", "grass", "water"]
    assert "/" not in state["name"]
    assert told(server, "label", {"number": 0, "label": "grass"})["number"] == 1
    assert told(server, "skip", {"number": 1})["last"] == ""
    assert told(server, "class", {"name": "owl"})["classes"][-1] == "owl"
    assert told(server, "label", {"number": 2, "label": "owl"})["labeled"] == 2
    text = server.queue.labels.table.read_text()
    assert text.count(",grass,") == 2 and text.count(",owl,") == 1
    assert told(server, "undo", {"number": 3})["number"] == 2
    assert ",owl," not in server.queue.labels.table.read_text()
    status, content, _ = ask(server, "label", {"number": 0, "label": "grass"})
    assert status == 409 and json.loads(content)["number"] == 2
    status, content, _ = ask(server, "label", {"number": 2, "label": "cow"})
    assert status == 422 and "no class" in json.loads(content)["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"number": "0", "label": "grass"}', 400),
        (b'{"number": true, "label": "grass"}', 400),
        (b'{"number": 0.0, "label": "grass"}', 400),
        (b'{"number": 0, "label": ["grass"]}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 4000, 400),
        (b"x" * 5000, 413),
    ],
)
def test_nonsense_is_refused(server: LabelServer, body: bytes, status: int) -> None:
    assert ask(server, "label", body)[0] == status
    assert told(server, "state")["number"] == 0


def test_a_failing_disk_is_told(server: LabelServer) -> None:
    server.queue.labels.table = server.queue.labels.table.parent / "gone" / "labels.csv"
    status, content, _ = ask(server, "label", {"number": 0, "label": "grass"})
    assert status == 422 and "cannot write" in json.loads(content)["error"]
    assert told(server, "state")["number"] == 0


def test_many_at_once_label_every_picture_once(server: LabelServer) -> None:
    asked = [{"number": at % 6, "label": "grass"} for at in range(60)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda body: ask(server, "label", body)[0], asked))
    done = told(server, "state")["number"]
    assert found.count(200) == done and set(found) <= {200, 409}
    assert server.queue.labels.table.read_text().count(",grass,") == 1 + done
