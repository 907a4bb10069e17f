"""A stand-in for the Hugging Face hub on this machine: repositories in memory, over HTTP.

Models go where the real hub has them go, to a storage of their own; other files are part of the
request that names all files of a new version.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.hub.answering import AnsweringHandler, serve
from tests.hub.storage_server import Storage, serve_storage

TOKEN = "hf_testtoken"
LARGE = ".safetensors"  # whatever their size


@dataclass
class Hub:
    """What the server holds, and what it was asked."""

    storage: Storage
    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    large: dict[str, dict[str, str]] = field(default_factory=dict)  # SHA-256 of files in storage
    private: dict[str, bool] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuse: int = 0  # the status that every upload is answered with, if any
    full: bool = False  # no space for another large file

    def commit(self, repository: str) -> str:
        files = self.repositories[repository], self.large.get(repository, {})
        return hashlib.sha1(repr([sorted(each.items()) for each in files]).encode()).hexdigest()


class HubHandler(AnsweringHandler):
    hub: Hub

    def do_POST(self) -> None:
        hub, path, body = self.hub, unquote(urlsplit(self.path).path), self.read_body()
        hub.requests.append(f"POST {path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid username or password."})
        if hub.refuse:
            return self.answer(hub.refuse, {"error": "no"})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path == "/api/validate-yaml":  # the head of the card
            assert json.loads(body)["content"].startswith("---\n")
            return self.answer(200, {"errors": [], "warnings": []})
        if path.endswith(".git/info/lfs/objects/batch"):
            return self.place_objects(json.loads(body))
        repository = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            return self.choose_ways(json.loads(body)["files"])
        assert "/commit/" in path, path
        self.store(repository, [json.loads(line) for line in body.splitlines() if line])
        address = f"{hub.address}/{repository}/commit/{hub.commit(repository)}"
        return self.answer(
            200, {"success": True, "commitUrl": address, "commitOid": hub.commit(repository)}
        )

    def create(self, asked: dict[str, Any]) -> None:
        name = f"{asked.get('organization') or 'me'}/{asked['name']}"
        self.hub.private.setdefault(name, asked.get("visibility") == "private")
        self.hub.repositories.setdefault(name, {})
        self.answer(200, {"url": f"{self.hub.address}/{name}"})

    def choose_ways(self, files: list[dict[str, Any]]) -> None:
        """Which files go to the storage, and which come with the commit."""
        ways = {
            each["path"]: "lfs" if each["path"].endswith(LARGE) else "regular" for each in files
        }
        answer = [
            {"path": name, "uploadMode": way, "shouldIgnore": False} for name, way in ways.items()
        ]
        self.answer(200, {"files": answer})

    def place_objects(self, asked: dict[str, Any]) -> None:
        """Where to send files, each by its SHA-256."""
        assert (asked["operation"], asked["hash_algo"]) == ("upload", "sha256")
        objects = [
            {**each, "error": {"code": 507, "message": "no space left"}}
            if self.hub.full
            else self.hub.storage.place_object(each["oid"], each["size"])
            for each in asked["objects"]
        ]
        way = "basic" if self.hub.storage.part_size is None else "multipart"
        assert way in asked["transfers"]
        self.answer(200, {"transfer": way, "objects": objects})

    def store(self, repository: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                content = base64.b64decode(value["content"])
                self.hub.repositories[repository][value["path"]] = content
            elif line["key"] == "lfsFile":
                assert value["oid"] in self.hub.storage, "a commit names a file that is not there"
                assert value["size"] == self.hub.storage.size(value["oid"])
                self.hub.large.setdefault(repository, {})[value["path"]] = value["oid"]

    def do_GET(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append(f"{self.command} {path}")
        if re.search("/xet-(read|write)-token/", path):
            return self.grant_access()
        if path.startswith("/api/"):  # what the library would like to know besides
            return self.answer(404, {"error": "no"})
        user, name, _, revision, *file = path.strip("/").split("/")
        repository = f"{user}/{name}"
        if repository not in hub.repositories:
            return self.answer(401, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        commit = hub.commit(repository)
        if revision not in ("main", commit):
            return self.answer(404, {"error": "no"}, X_Error_Code="RevisionNotFound")
        oid = hub.large.get(repository, {}).get("/".join(file))
        if oid is not None:
            return self.lead_to_storage(repository, commit, oid)
        content = hub.repositories[repository].get("/".join(file))
        if content is None:
            return self.answer(
                404, {"error": "no"}, X_Error_Code="EntryNotFound", X_Repo_Commit=commit
            )
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        return self.answer(200, content, ETag=etag, X_Repo_Commit=commit)

    def grant_access(self) -> None:
        """Access to Xet's storage: for everyone to read, with a token to write."""
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "no"})
        granted = self.hub.storage.grant_access()
        self.answer(
            200,
            granted,
            X_Xet_Cas_Url=str(granted["casUrl"]),
            X_Xet_Access_Token=str(granted["accessToken"]),
            X_Xet_Token_Expiration=str(granted["exp"]),
        )

    def lead_to_storage(self, repository: str, commit: str, oid: str) -> None:
        storage = self.hub.storage
        headers = {
            "X_Repo_Commit": commit,
            "X_Linked_Etag": f'"{oid}"',
            "X_Linked_Size": str(storage.size(oid)),
            "Location": f"{storage.address}/objects/{oid}",
        }
        if oid in storage.chunked:
            headers["X_Xet_Hash"] = storage.chunked[oid].name
            place = f"/api/models/{repository}/xet-read-token/{commit}"
            headers["X_Xet_Refresh_Route"] = f"{self.hub.address}{place}"
        self.answer(302, **headers)

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def serve_hub() -> Iterator[Hub]:
    with serve_storage() as storage:
        hub = Hub(storage)
        with serve(type("BoundHandler", (HubHandler,), {"hub": hub})) as address:
            hub.address = address
            yield hub
