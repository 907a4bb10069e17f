"""The server answers only requests from this machine that have the token."""

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
from fullmatch.labeling.server import LabelServer, create_server
from tests.labeling.serving import serving
from tests.own_pictures import clean_folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabelServer]:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    with serving(home, 6) as server:
        yield server


def send(
    server: LabelServer,
    path: str,
    body: object = None,
    *,
    token: str | None = None,
    method: str | None = None,
    **headers: str,
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    fields = {"Content-Type": "application/json"} if body is not None else {}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    address = f"/{server.token if token is None else token}/{path}"
    connection.request(method or ("GET" if body is None else "POST"), address, content, fields)
    response = connection.getresponse()
    result = response.status, response.read(), dict(response.getheaders())
    connection.close()
    return result


def send_json(server: LabelServer, path: str, body: object = None) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(send(server, path, body)[1])
    return answer


def test_listens_on_this_machine_only(server: LabelServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    with create_server(server.queue) as another:
        assert len(server.token) == 32
        assert another.token != server.token
    with pytest.raises(UserError, match="cannot listen on port"):
        create_server(server.queue, server.server_port)
    with pytest.raises(UserError, match="cannot listen on port"):
        create_server(server.queue, 99999)


@pytest.mark.parametrize("path", ["", "page.js", "style.css", "state", "picture/0"])
def test_every_response_needs_the_token(server: LabelServer, path: str) -> None:
    status, content, headers = send(server, path)
    assert status == 200
    assert content
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert not any(name.lower().startswith("access-control") for name in headers)
    for wrong in ("", "x" * 32, server.token[:-1], server.token.swapcase(), "%s"):
        status, content, headers = send(server, path, token=wrong)
        assert status == 403
        assert server.token.encode() not in content
    assert send(server, path, Host="evil.example")[0] == 403
    assert send(server, path, Host=f"evil.example:{server.server_port}")[0] == 403
    assert send(server, path, Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("path", ["label", "skip", "undo", "class"])
def test_changes_need_the_token_and_this_origin(server: LabelServer, path: str) -> None:
    body = {"number": 0, "label": "grass", "name": "owl"}
    before = send_json(server, "state")
    assert send(server, path, body, token="wrong")[0] == 403
    assert send(server, path, body, Host="evil.example")[0] == 403
    assert send(server, path, body, Origin="http://evil.example")[0] == 403
    assert send(server, path, body, Origin="null")[0] == 403
    assert send(server, path, body, Content_Type="text/plain")[0] == 415
    assert send(server, path)[0] == 404  # following a link changes nothing
    assert send(server, path, body, method="OPTIONS")[0] == 501
    assert send_json(server, "state") == before
    assert not server.queue.table.path.exists()


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
def test_no_request_can_name_a_file(server: LabelServer, path: str) -> None:
    raw = path.encode()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        head = f"GET /{server.token}/".encode() + raw + b" HTTP/1.0\r\n"
        connection.sendall(head + f"Host: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        response = b""
        while part := connection.recv(65536):
            response += part
    assert response.split()[1] == b"404", response[:100]


def test_pictures_are_sent_as_thumbnails(server: LabelServer) -> None:
    _, content, headers = send(server, "picture/1")
    assert headers["Content-Type"] == "image/jpeg"
    assert Image.open(io.BytesIO(content)).size == (24, 16)
    Path(server.queue.pictures[1].name).write_text("<script>alert(1)</script>")
    status, content, _ = send(server, "picture/1")
    assert status == 404
    assert b"script" not in content
    os.unlink(server.queue.pictures[1].name)
    assert send(server, "picture/1")[0] == 404


def test_labels_are_written_to_the_table(server: LabelServer) -> None:
    state = send_json(server, "state")
    assert (state["number"], state["total"]) == (0, 6)
    assert state["classes"] == ["brick", "grass", "water"]
    assert "/" not in state["name"]
    assert send_json(server, "label", {"number": 0, "label": "grass"})["number"] == 1
    assert send_json(server, "skip", {"number": 1})["last"] == ""
    assert send_json(server, "class", {"name": "owl"})["classes"][-1] == "owl"
    assert send_json(server, "label", {"number": 2, "label": "owl"})["labeled"] == 2
    text = server.queue.table.path.read_text()
    assert text.count(",grass,") == 2
    assert text.count(",owl,") == 1
    assert send_json(server, "undo", {"number": 3})["number"] == 2
    assert ",owl," not in server.queue.table.path.read_text()
    status, content, _ = send(server, "label", {"number": 0, "label": "grass"})
    assert status == 409
    assert json.loads(content)["number"] == 2
    status, content, _ = send(server, "label", {"number": 2, "label": "cow"})
    assert status == 422
    assert "no class" in json.loads(content)["error"]


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
def test_invalid_requests_are_rejected(server: LabelServer, body: bytes, status: int) -> None:
    assert send(server, "label", body)[0] == status
    assert send_json(server, "state")["number"] == 0


def test_a_write_error_is_reported(server: LabelServer) -> None:
    server.queue.table.path = server.queue.table.path.parent / "gone" / "labels.csv"
    status, content, _ = send(server, "label", {"number": 0, "label": "grass"})
    assert status == 422
    assert "cannot write" in json.loads(content)["error"]
    assert send_json(server, "state")["number"] == 0


def test_concurrent_requests_label_every_picture_once(server: LabelServer) -> None:
    bodies = [{"number": at % 6, "label": "grass"} for at in range(60)]
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda body: send(server, "label", body)[0], bodies))
    done = send_json(server, "state")["number"]
    assert statuses.count(200) == done
    assert set(statuses) <= {200, 409}
    assert server.queue.table.path.read_text().count(",grass,") == 1 + done
