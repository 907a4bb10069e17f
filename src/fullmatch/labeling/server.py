"""The server of the labeling page: for this machine only, and only with the secret token."""

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fullmatch.data.stores.pictures import try_read
from fullmatch.errors import UserError
from fullmatch.inference.thumbnails import make_thumbnail, open_picture
from fullmatch.labeling.assets import FILES, content_security_policy
from fullmatch.labeling.queue import LabelQueue, OutdatedRequest

ADDRESS = "127.0.0.1"
SIDE = 1000  # largest width and height of a picture, in pixels
MAX_REQUEST = 4096  # bytes
TIMEOUT = 10  # seconds until a silent connection is closed
LIFETIME = 60.0  # seconds until any connection is closed, however slowly it goes on
CONNECTIONS = 32  # at a time
NOT_FOUND = "not found"
WRONG_ORIGIN = "requests from other sites are not allowed"


class LabelServer(ThreadingHTTPServer):
    """Serves a queue at an address that cannot be guessed."""

    daemon_threads = True
    queue: LabelQueue
    token: str
    lifetime: float
    slots: threading.Semaphore

    @property
    def hosts(self) -> tuple[str, str]:
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """One connection more; closed at once where there are too many."""
        if self.slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        timer = threading.Timer(self.lifetime, close, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignored: a browser that closes the connection early is not an error."""


def close(connection: socket.socket) -> None:
    with suppress(OSError):  # it may have ended
        connection.shutdown(socket.SHUT_RDWR)


def create_server(
    queue: LabelQueue,
    port: int = 0,
    *,
    lifetime: float = LIFETIME,
    connections: int = CONNECTIONS,
) -> LabelServer:
    """A server that listens on a port; 0 chooses a free one."""
    try:
        server = LabelServer((ADDRESS, port), LabelRequestHandler)
    except (OSError, OverflowError):
        raise UserError(
            f"cannot listen on port {port}; choose another --port, or leave it out"
        ) from None
    server.queue, server.token = queue, secrets.token_urlsafe(24)
    server.lifetime, server.slots = lifetime, threading.Semaphore(connections)
    return server


class LabelRequestHandler(BaseHTTPRequestHandler):
    """Serves the page, its state, and pictures by number; requests never contain file paths."""

    server: LabelServer
    timeout = TIMEOUT
    server_version, sys_version = "fullmatch", ""

    def do_GET(self) -> None:
        resource = self.authorize()
        if resource is None:
            return
        if resource in FILES:
            kind, text = FILES[resource]
            self.respond(HTTPStatus.OK, kind, text.encode())
        elif resource == "state":
            self.respond_state()
        elif resource.startswith("picture/"):
            self.respond_picture(resource.removeprefix("picture/"))
        else:
            self.respond_error(HTTPStatus.NOT_FOUND, NOT_FOUND)

    def do_POST(self) -> None:
        resource = self.authorize()
        if resource is None:
            return
        action = self.actions().get(resource)
        if action is None:
            return self.respond_error(HTTPStatus.NOT_FOUND, NOT_FOUND)
        body = self.read_body()
        if body is None:
            return
        try:
            action(json.loads(body))
        except OutdatedRequest:
            self.respond_state(HTTPStatus.CONFLICT)
        except UserError as error:
            self.respond_error(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ValueError, TypeError, KeyError, RecursionError):
            self.respond_error(HTTPStatus.BAD_REQUEST, "invalid request")
        else:
            self.respond_state()

    def actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        queue = self.server.queue
        return {
            "label": lambda body: queue.label(as_integer(body["number"]), as_text(body["label"])),
            "skip": lambda body: queue.skip(as_integer(body["number"])),
            "undo": lambda body: queue.undo(as_integer(body["number"])),
            "class": lambda body: queue.add_class(as_text(body["name"])),
        }

    def authorize(self) -> str | None:
        """The path below the token; None, after an error response, without the right to it."""
        # A foreign host name means DNS rebinding: another site's page that resolves to this server.
        if self.headers.get("Host") not in self.server.hosts:
            self.respond_error(HTTPStatus.FORBIDDEN, WRONG_ORIGIN)
            return None
        token, slash, resource = self.path.removeprefix("/").partition("/")
        valid = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        if not valid or not slash:
            self.respond_error(HTTPStatus.FORBIDDEN, "open the address that the terminal shows")
            return None
        return resource

    def read_body(self) -> bytes | None:
        """The JSON of a request; None, after an error response, if it must not be read."""
        # Other sites can send JSON only after a CORS preflight, which this server never grants.
        if self.headers.get_content_type() != "application/json":
            self.respond_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON")
            return None
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            self.respond_error(HTTPStatus.FORBIDDEN, WRONG_ORIGIN)
            return None
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > MAX_REQUEST:
            self.respond_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request too large")
            return None
        return self.rfile.read(int(size))

    def respond_state(self, status: HTTPStatus = HTTPStatus.OK) -> None:
        queue = self.server.queue
        with queue.lock:
            state = asdict(queue.state()) | {"table": str(queue.table.path)}
        self.respond(status, "application/json", json.dumps(state).encode())

    def respond_picture(self, number: str) -> None:
        pictures = self.server.queue.pictures
        at = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else -1
        if not 0 <= at < len(pictures):
            return self.respond_error(HTTPStatus.NOT_FOUND, NOT_FOUND)

        def read_thumbnail(path: str) -> bytes:
            with open_picture(path) as image:
                return make_thumbnail(image, SIDE)

        jpeg = try_read(read_thumbnail, pictures[at].name)
        if jpeg is None:
            return self.respond_error(HTTPStatus.NOT_FOUND, "this picture can no longer be read")
        self.respond(HTTPStatus.OK, "image/jpeg", jpeg)

    def respond_error(self, status: HTTPStatus, reason: str) -> None:
        self.respond(status, "application/json", json.dumps({"error": reason}).encode())

    def respond(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": content_security_policy(),
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Connection": "close",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """No log: the terminal belongs to the user, and addresses contain the token."""


def as_integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected an integer")
    return value


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value
