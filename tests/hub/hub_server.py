"""A stand-in for the Hugging Face hub on this machine: repositories in memory, over HTTP."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_testtoken"


@dataclass
class Hub:
    """What the server holds, and what it was asked."""

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuse: int = 0  # the status that every upload is answered with, if any

    def commit(self, repository: str) -> str:
        files = sorted(self.repositories[repository].items())
        return hashlib.sha1(repr(files).encode()).hexdigest()


class HubHandler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, content: object = b"", **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self) -> None:
        hub, path, body = self.hub, unquote(urlsplit(self.path).path), self.read_body()
        hub.requests.append(f"POST {path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid username or password."})
        if hub.refuse:
            return self.answer(hub.refuse, {"error": "no"})
        if path == "/api/repos/create":
            asked = json.loads(body)
            owner = asked.get("organization") or "me"
            name = f"{owner}/{asked['name']}"
            hub.private.setdefault(name, asked.get("visibility") == "private")
            hub.repositories.setdefault(name, {})
            return self.answer(200, {"url": f"{hub.address}/{name}"})
        if path == "/api/validate-yaml":  # the head of the card
            assert json.loads(body)["content"].startswith("---\n")
            return self.answer(200, {"errors": [], "warnings": []})
        repository = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            files = [
                {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False}
                for each in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": files})
        assert "/commit/" in path, path
        self.store(repository, [json.loads(line) for line in body.splitlines() if line])
        address = f"{hub.address}/{repository}/commit/{hub.commit(repository)}"
        return self.answer(
            200, {"success": True, "commitUrl": address, "commitOid": hub.commit(repository)}
        )

    def store(self, repository: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.hub.repositories[repository][line["value"]["path"]] = content

    def do_GET(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append(f"{self.command} {path}")
        if path.startswith("/api/"):  # what the library would like to know besides
            return self.answer(404, {"error": "no"})
        user, name, _, revision, *file = path.strip("/").split("/")
        repository = f"{user}/{name}"
        if repository not in hub.repositories:
            return self.answer(401, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        commit = hub.commit(repository)
        if revision not in ("main", commit):
            return self.answer(404, {"error": "no"}, X_Error_Code="RevisionNotFound")
        content = hub.repositories[repository].get("/".join(file))
        if content is None:
            return self.answer(
                404, {"error": "no"}, X_Error_Code="EntryNotFound", X_Repo_Commit=commit
            )
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        return self.answer(200, content, ETag=etag, X_Repo_Commit=commit)

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def serve_hub() -> Iterator[Hub]:
    hub = Hub()
    handler = type("BoundHandler", (HubHandler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
