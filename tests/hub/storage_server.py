"""A stand-in for where the hub keeps large files: a server of its own, which is given no token.

A file comes whole or in parts (Git LFS), or as chunks by their content (Xet), as the real one's
protocols have it: https://huggingface.co/docs/xet. It takes hashes for granted: what it is sent
is checked where the file is put together.
"""

import hashlib
import json
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.hub.answering import AnsweringHandler, serve

ACCESS = "xet_testtoken"  # what the hub gives to those who may send or fetch chunks
RECORD = 48  # bytes of each entry of a list of chunks
END = b"\xff" * 32


class Term(NamedTuple):
    """A range of the chunks of a block."""

    block: str
    size: int
    start: int
    end: int


class ChunkedFile(NamedTuple):
    """A file that is kept as chunks."""

    name: str  # the hash that Xet knows it by
    size: int
    terms: tuple[Term, ...]


@dataclass
class Storage:
    """What is kept, and what was asked."""

    address: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)  # by SHA-256
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    blocks: dict[str, bytes] = field(default_factory=dict)
    chunked: dict[str, ChunkedFile] = field(default_factory=dict)  # by SHA-256
    part_size: int | None = None  # files come in parts of this size
    requests: list[str] = field(default_factory=list)
    refuse: int = 0  # the status that whatever is sent is answered with, if any

    def place_object(self, oid: str, size: int) -> dict[str, object]:
        """What the hub tells who wants to send a file: where to, or that it is here."""
        about: dict[str, object] = {"oid": oid, "size": size}
        if oid in self.objects:
            return about
        address = f"{self.address}/objects/{oid}"
        upload: dict[str, object] = {"href": address}
        if self.part_size is not None:
            count = -(-size // self.part_size)
            header = {str(part): f"{address}/{part}" for part in range(1, count + 1)}
            upload["header"] = header | {"chunk_size": str(self.part_size)}
        return about | {"actions": {"upload": upload}}

    def grant_access(self) -> dict[str, str | int]:
        return {"casUrl": self.address, "accessToken": ACCESS, "exp": int(time.time()) + 3600}

    def __contains__(self, oid: str) -> bool:
        return oid in self.objects or oid in self.chunked

    def size(self, oid: str) -> int:
        return self.chunked[oid].size if oid in self.chunked else len(self.objects[oid])


def read_chunked_files(shard: bytes) -> Iterator[tuple[str, ChunkedFile]]:
    """The files that a list of chunks (a shard) describes, by their SHA-256."""
    records = (shard[start : start + RECORD] for start in range(RECORD, len(shard), RECORD))
    while (head := next(records))[:32] != END:
        count = struct.unpack("<I", head[36:40])[0]
        terms = []
        for record in [next(records) for _ in range(count)]:
            _, size, start, end = struct.unpack("<4I", record[32:])
            terms.append(Term(spell(record[:32]), size, start, end))
        for _ in range(count):
            next(records)  # a hash of each range
        name, size = spell(head[:32]), sum(term.size for term in terms)
        yield spell(next(records)[:32]), ChunkedFile(name, size, tuple(terms))


def spell(name: bytes) -> str:
    """A hash as Xet writes it: four integers, the last byte of each first."""
    return "".join(f"{word:016x}" for word in struct.unpack("<4Q", name))


def find_chunks(block: bytes, count: int) -> list[int]:
    """Where the first chunks of a block begin, and where the last one of them ends."""
    starts = [0]
    for _ in range(count):
        size = int.from_bytes(block[starts[-1] + 1 : starts[-1] + 4], "little")
        starts.append(starts[-1] + 8 + size)
    return starts


class StorageHandler(AnsweringHandler):
    storage: Storage

    def do_PUT(self) -> None:
        storage, body = self.storage, self.read_body()
        storage.requests.append(f"PUT {self.path}")
        assert "Authorization" not in self.headers
        if storage.refuse:
            return self.answer(storage.refuse)
        _, oid, *part = self.path.strip("/").split("/")
        if part:
            storage.parts.setdefault(oid, {})[int(part[0])] = body
        else:
            self.keep(oid, body)
        return self.answer(200, ETag=hashlib.md5(body).hexdigest())

    def keep(self, oid: str, content: bytes) -> None:
        assert hashlib.sha256(content).hexdigest() == oid
        self.storage.objects[oid] = content

    def do_POST(self) -> None:
        storage, body = self.storage, self.read_body()
        storage.requests.append(f"POST {self.path}")
        if self.path.startswith("/objects/"):
            oid = self.path.rpartition("/")[2]
            parts = storage.parts.pop(oid)
            sent = {each["partNumber"]: each["etag"] for each in json.loads(body)["parts"]}
            assert sent == {n: hashlib.md5(part).hexdigest() for n, part in parts.items()}
            self.keep(oid, b"".join(parts[number] for number in sorted(parts)))
            return self.answer(200, {})
        assert self.headers["Authorization"] == f"Bearer {ACCESS}"
        if storage.refuse:
            return self.answer(storage.refuse)
        if found := re.fullmatch(r"/v1/xorbs/default/(\w+)", self.path):
            storage.blocks[found[1]] = body
            return self.answer(200, {"was_inserted": True})
        if self.path == "/v1/shards":
            storage.chunked |= dict(read_chunked_files(body))
            return self.answer(200, {"result": 1})
        return self.answer(404)  # newer requests, without which the program does

    def do_GET(self) -> None:
        storage = self.storage
        storage.requests.append(f"{self.command} {self.path}")
        if found := re.fullmatch(r"/objects/(\w+)", self.path):
            assert "Authorization" not in self.headers
            return self.answer(200, storage.objects[found[1]])
        if found := re.fullmatch(r"/blocks/(\w+)", self.path):
            start, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            content = storage.blocks[found[1]]
            span = f"bytes {start}-{end}/{len(content)}"
            return self.answer(206, content[start : end + 1], Content_Range=span)
        if found := re.fullmatch(r"/v2/reconstructions/(\w+)", self.path):
            assert self.headers["Authorization"] == f"Bearer {ACCESS}"
            (file,) = (each for each in storage.chunked.values() if each.name == found[1])
            return self.answer(200, self.describe(file))
        return self.answer(404)  # no chunk is known from elsewhere

    def describe(self, file: ChunkedFile) -> dict[str, object]:
        """What a file consists of, and where to fetch it."""
        terms: list[object] = []
        places: dict[str, list[object]] = {}
        for term in file.terms:
            chunks = {"start": term.start, "end": term.end}
            starts = find_chunks(self.storage.blocks[term.block], term.end)
            place = {"start": starts[term.start], "end": starts[term.end] - 1}
            terms.append({"hash": term.block, "unpacked_length": term.size, "range": chunks})
            entry = {
                "url": f"{self.storage.address}/blocks/{term.block}",
                "ranges": [{"chunks": chunks, "bytes": place}],
            }
            places.setdefault(term.block, []).append(entry)
        return {"offset_into_first_range": 0, "terms": terms, "xorbs": places}


@contextmanager
def serve_storage() -> Iterator[Storage]:
    storage = Storage()
    with serve(type("BoundHandler", (StorageHandler,), {"storage": storage})) as address:
        storage.address = address
        yield storage
