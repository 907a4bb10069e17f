"""Damaged copies of files: by bytes, and by the grammar of JSON, TOML, CSV and safetensors."""

import csv
import io
import json
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.odd_values import ODD_TEXTS, odd_value
from benchmarks.table_mutations import mutate_table, mutate_tar

Mutation = Callable[[bytes, random.Random], bytes]
MOST_BYTES = 5_000_000  # of a damaged file
ODD_TOML = (
    "nan", "-inf", "1e308", "-1", "0", "''", '"\\u0000"', "[]", "{}", "true", "1979-05-27",
    "[[1]]", "999999999999999999999999", "[" * 3000, "{a=" * 3000, '"' + "x" * 3000 + '"',
)  # fmt: skip


# By bytes


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 8, 64)) if content else 0):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def zero_range(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + rng.choice((b"\x00", b"\xff")) * (end - start) + content[end:]


def insert_bytes(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.choice((1, 4, 300))) + content[at:]


def repeat_range(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    times = rng.choice((2, 20)) if len(content) < MOST_BYTES // 20 else 2
    return content[:start] + content[start:end] * times + content[end:]


def replace_all(content: bytes, rng: random.Random) -> bytes:
    texts = (b"", b"null", b"[]", b"{}", b"[" * 200_000, b"a." * 100_000 + b"a=1", b"\n" * 9999)
    return rng.choice((*texts, rng.randbytes(500), make_pickle(), b"%PDF-1.4", b"GIF89a"))


def make_pickle() -> bytes:
    """A pickle that would run a command."""
    return pickle.dumps(type("Bomb", (), {"__reduce__": lambda self: (os.system, ("true",))})())


BYTES: tuple[Mutation, ...] = (
    flip_bits,
    truncate,
    zero_range,
    insert_bytes,
    repeat_range,
    replace_all,
)


# By grammar


def mutate_value(value: Any, rng: random.Random) -> Any:
    """The same value with one place changed, at a random depth."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return odd_value(rng)
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    copy = value.copy()
    action = rng.random()
    if action < 0.15:
        del copy[key]
    elif action < 0.25 and isinstance(copy, dict):
        copy[rng.choice(ODD_TEXTS)] = copy.pop(key)
    elif action < 0.3 and isinstance(copy, list):
        copy.insert(key, copy[key])
    else:
        copy[key] = mutate_value(copy[key], rng)
    return copy


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    value = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        value = mutate_value(value, rng)
    return dump_json(value)


def dump_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def mutate_lines(content: bytes, rng: random.Random) -> bytes:
    """One line of a JSON-lines file."""
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = mutate_json(lines[at], rng)
    return b"\n".join(lines) + b"\n" * rng.randrange(2)


def mutate_toml(content: bytes, rng: random.Random) -> bytes:
    """One line of a TOML file: another value, another key, or gone."""
    lines = content.decode().splitlines()
    places = [at for at, line in enumerate(lines) if line]
    for at in rng.sample(places, min(len(places), rng.choice((1, 1, 3)))):
        key, equals, _ = lines[at].partition("=")
        action = rng.random()
        if action < 0.2:
            lines[at] = ""
        elif action < 0.3:
            lines[at] = lines[at] * 2
        elif action < 0.4:
            lines[at] = "a." * rng.choice((3, 50, 20_000)) + "a = 1"
        elif equals:
            lines[at] = f"{key}= {rng.choice(ODD_TOML)}"
        else:
            lines[at] = rng.choice(("[a]", "[[data]]", "[data", "[" + "a." * 5000 + "a]"))
    return "\n".join(lines).encode()


def mutate_csv(content: bytes, rng: random.Random) -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode())))
    for _ in range(rng.choice((1, 1, 4))):
        row = rng.choice(rows)
        action = rng.random()
        if action < 0.6 and row:
            row[rng.randrange(len(row))] = rng.choice(ODD_TEXTS)
        elif action < 0.8:
            row.append(rng.choice(ODD_TEXTS))
        else:
            del row[rng.randrange(len(row) + 1) :]
    out = io.StringIO()
    csv.writer(out, lineterminator=rng.choice(("\n", "\r\n"))).writerows(rows)
    return out.getvalue().encode(rng.choice(("utf-8", "utf-8-sig", "utf-16")), "surrogatepass")


def mutate_safetensors(content: bytes, rng: random.Random) -> bytes:
    """The header or the numbers of a file of tensors."""
    (size,) = struct.unpack("<Q", content[:8])
    header, numbers = json.loads(content[8 : 8 + size]), content[8 + size :]
    action = rng.random()
    if action < 0.3:
        header = mutate_value(header, rng)
    elif action < 0.6 and "__metadata__" in header:
        facts = header["__metadata__"]
        key = rng.choice(list(facts))
        try:
            facts[key] = dump_json(mutate_value(json.loads(facts[key]), rng)).decode()
        except ValueError:
            facts[key] = rng.choice(ODD_TEXTS)
    else:
        numbers = fill_tensor(header, numbers, rng)
    text = dump_json(header)
    length = rng.choice((2**63, 0, len(text) - 1)) if rng.random() < 0.05 else len(text)
    return struct.pack("<Q", length) + text + numbers


def fill_tensor(header: dict[str, Any], numbers: bytes, rng: random.Random) -> bytes:
    """Some numbers of one tensor become NaN, infinite, or anything."""
    name = rng.choice([name for name in header if name != "__metadata__"])
    start, end = header[name]["data_offsets"]
    width = {"F32": 4, "I64": 8, "F16": 2}.get(header[name]["dtype"], 1)
    floats = (struct.pack("<f", float("nan")), struct.pack("<f", float("inf")))
    integers = (struct.pack("<q", -(2**63)), struct.pack("<q", 10**9), b"\xff" * 8)
    pattern = rng.choice({4: floats, 8: integers}.get(width, (b"\xff" * width, b"\x7c" * width)))
    count = (end - start) // width
    first = rng.randrange(count) if count else 0
    last = rng.choice((first + 1, count)) if count else 0
    low, high = start + first * width, start + last * width
    return numbers[:low] + pattern * (last - first) + numbers[high:]


def mutate_npz(content: bytes, rng: random.Random) -> bytes:
    """One array of an .npz file: another header, other bytes, or gone."""
    members: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    action = rng.random()
    if action < 0.2:
        del members[name]
    elif action < 0.6:
        members[name] = npy_with_header(members[name], rng)
    else:
        members[name] = rng.choice(BYTES)(members[name], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return out.getvalue()


def npy_with_header(content: bytes, rng: random.Random) -> bytes:
    kind = rng.choice(("<f8", "|O", "<U4", "<M8[s]", "<c16", "|b1", "<i8", "|V3", ">f4", "?"))
    shape = rng.choice(("()", "(3,)", "(10**9, 10**9)", "(0, 8, 8)", "(-1,)", "(40, 8, 8)", "'x'"))
    text = f"{{'descr': '{kind}', 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + content


GRAMMARS: dict[str, Mutation] = {
    ".json": mutate_json,
    ".jsonl": mutate_lines,
    ".toml": mutate_toml,
    ".csv": mutate_csv,
    ".safetensors": mutate_safetensors,
    ".npz": mutate_npz,
    ".npy": npy_with_header,
    ".tar": mutate_tar,
    ".parquet": mutate_table,
    ".arrow": mutate_table,
}


# By kind of file


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**36)


KINDS: tuple[Callable[[Path], object], ...] = (
    make_pipe,
    make_endless,
    make_sparse,
    lambda path: path.mkdir(),
    lambda path: path.symlink_to(path),
    lambda path: None,
)


def damage(path: Path, rng: random.Random) -> str:
    """Damage a file in place; returns how."""
    if rng.random() < 0.04:
        path.unlink()
        kind = rng.choice(KINDS)
        kind(path)
        return f"kind {kind.__name__}"
    grammar = GRAMMARS.get(path.suffix)
    chosen = grammar if grammar is not None and rng.random() < 0.7 else rng.choice(BYTES)
    path.write_bytes(chosen(path.read_bytes(), rng))
    return chosen.__name__
