"""The labeling page's server: this machine only, and only for who knows the token."""

import hmac
import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fullmatch.data.stores.pictures import try_read
from fullmatch.errors import UserError
from fullmatch.inference.thumbnails import open_file, preview
from fullmatch.labeling.assets import FILES, policy
from fullmatch.labeling.queue import Queue, Stale

ADDRESS = "127.0.0.1"
SIDE = 1000  # pixels of a picture at most
LARGEST = 4096  # bytes of a request
PATIENCE = 10  # seconds that a silent connection is kept


class LabelServer(ThreadingHTTPServer):
    """Serves a queue under an address that cannot be guessed."""

    daemon_threads = True
    queue: Queue
    token: str

    @property
    def hosts(self) -> tuple[str, str]:
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of a picture is no news."""


def server_of(queue: Queue, port: int = 0) -> LabelServer:
    """A server that listens; port 0 takes any that is free."""
    try:
        server = LabelServer((ADDRESS, port), Handler)
    except (OSError, OverflowError):
        raise UserError(f"cannot listen on port {port}; give another, or leave it out") from None
    server.queue, server.token = queue, secrets.token_urlsafe(24)
    return server


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, its state, and pictures by their number; knows no paths."""

    server: LabelServer
    timeout = PATIENCE
    server_version, sys_version = "fullmatch", ""

    def do_GET(self) -> None:
        rest = self.admitted()
        if rest is None:
            return
        if rest in FILES:
            kind, text = FILES[rest]
            self.answer(HTTPStatus.OK, kind, text.encode())
        elif rest == "state":
            self.answer_state()
        elif rest.startswith("picture/"):
            self.answer_picture(rest.removeprefix("picture/"))
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def do_POST(self) -> None:
        rest = self.admitted()
        if rest is None:
            return
        queue = self.server.queue
        actions: dict[str, Callable[[dict[str, Any]], None]] = {
            "label": lambda asked: queue.label(whole(asked["number"]), text(asked["label"])),
            "skip": lambda asked: queue.skip(whole(asked["number"])),
            "undo": lambda asked: queue.undo(whole(asked["number"])),
            "class": lambda asked: queue.add_class(text(asked["name"])),
        }
        if rest not in actions:
            return self.refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
        # A form of another site cannot send JSON without asking, and it is never told yes.
        if self.headers.get_content_type() != "application/json":
            return self.refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON")
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            return self.refuse(HTTPStatus.FORBIDDEN, "not from there")
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > LARGEST:
            return self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long")
        try:
            actions[rest](json.loads(self.rfile.read(int(size))))
        except Stale:
            self.answer_state(HTTPStatus.CONFLICT)
        except UserError as error:
            self.refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ValueError, TypeError, KeyError, RecursionError):
            self.refuse(HTTPStatus.BAD_REQUEST, "not understood")
        else:
            self.answer_state()

    def admitted(self) -> str | None:
        """What is asked for below the token; None, and a refusal, for everybody else."""
        # Another name for this machine is a page elsewhere that pretends to be this one.
        if self.headers.get("Host") not in self.server.hosts:
            self.refuse(HTTPStatus.FORBIDDEN, "not from there")
            return None
        token, slash, rest = self.path.removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        if not known or not slash:
            self.refuse(HTTPStatus.FORBIDDEN, "open the address that the terminal shows")
            return None
        return rest

    def answer_state(self, status: HTTPStatus = HTTPStatus.OK) -> None:
        queue = self.server.queue
        with queue.lock:
            state = queue.state() | {"table": str(queue.labels.table)}
        self.answer(status, "application/json", json.dumps(state).encode())

    def answer_picture(self, number: str) -> None:
        pictures = self.server.queue.pictures
        at = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else -1
        if not 0 <= at < len(pictures):
            return self.refuse(HTTPStatus.NOT_FOUND, "no such picture")

        def shown(path: str) -> bytes:
            with open_file(path) as image:
                return preview(image, SIDE)

        pixels = try_read(shown, pictures[at].name)
        if pixels is None:
            return self.refuse(HTTPStatus.NOT_FOUND, "this picture cannot be read any more")
        self.answer(HTTPStatus.OK, "image/jpeg", pixels)

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        self.answer(status, "application/json", json.dumps({"error": reason}).encode())

    def answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy(),
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
        """Silent: the terminal is for the user, and addresses hold the token."""


def whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected a whole number")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value
