"""Damaged tables and shards: Parquet, Arrow and tar files with contents that nobody expects."""

import io
import json
import random
import tarfile
from collections.abc import Callable
from typing import Any

from benchmarks.odd_values import ODD_TEXTS, odd_value


def mutate_table(content: bytes, rng: random.Random) -> bytes:
    """The same table with a column changed, or with odd facts about its columns."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    is_parquet = content[:4] == b"PAR1"
    source = pa.BufferReader(content)
    # Without threads: a process that is forked while they hold a lock would wait for it forever.
    if is_parquet:
        table = parquet.read_table(source, use_threads=False, pre_buffer=False)
    else:
        options = ipc.IpcReadOptions(use_threads=False)
        table = ipc.open_file(source, options=options).read_all()
    table = rng.choice((change_column, change_column, change_facts, change_rows))(table, rng)
    out = io.BytesIO()
    if is_parquet:
        parquet.write_table(table, out)
    else:
        kind = ipc.new_file if rng.random() < 0.5 else ipc.new_stream
        with kind(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def change_column(table: Any, rng: random.Random) -> Any:
    import pyarrow as pa

    name = rng.choice(table.column_names)
    place = table.column_names.index(name)
    values = table[name].to_pylist()
    makers: tuple[Callable[[], Any], ...] = (
        lambda: [None] * len(values),
        lambda: [float("nan")] * len(values),
        lambda: [2**63 - 1] * len(values),
        lambda: [[value] for value in values],
        lambda: [{"bytes": value, "path": None} for value in values],
        lambda: [{"bytes": None, "path": "../x.png"} for _ in values],
        lambda: [rng.choice(ODD_TEXTS).encode("utf-8", "replace").decode() for _ in values],
        lambda: [rng.randbytes(40) for _ in values],
        lambda: [True] * len(values),
        lambda: [f"class {number}" for number in range(len(values))],
    )
    column = pa.array(rng.choice(makers)())
    other = rng.choice((name, name, "image", "label", "split", rng.choice(ODD_TEXTS[:7])))
    return table.set_column(place, other, column)


def change_facts(table: Any, rng: random.Random) -> Any:
    """What the `datasets` package writes about the columns."""
    label = rng.choice(({"_type": "ClassLabel", "names": ["cat", "dog"]}, odd_value(rng)))
    if isinstance(label, dict) and rng.random() < 0.7:
        names: tuple[Any, ...] = (odd_value(rng), ["cat"], [1, 2], [None, "a"], {"a": 1}, "ab")
        label["names"] = rng.choice(names)
    facts = rng.choice(({"info": {"features": {"label": label, "kind": label}}}, odd_value(rng)))
    if rng.random() < 0.2:
        facts = {"info": {"features": odd_value(rng)}}
    table = table.replace_schema_metadata({"huggingface": json.dumps(facts)})
    if rng.random() < 0.5:
        place = table.column_names.index("label")
        table = table.set_column(place, "label", [rng.choices((0, 1, -1, 5), k=len(table))])
    return table


def change_rows(table: Any, rng: random.Random) -> Any:
    import pyarrow as pa

    count = rng.choice((0, 1, 2, 200))
    if count <= len(table):
        return table.slice(0, count)
    return pa.concat_tables([table] * (count // len(table)))


def mutate_tar(content: bytes, rng: random.Random) -> bytes:
    """A shard with one odd member more, or with a member changed."""
    out = io.BytesIO()
    formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    with (
        tarfile.open(fileobj=io.BytesIO(content)) as old,
        tarfile.open(fileobj=out, mode="w", format=rng.choice(formats)) as new,
    ):
        members = old.getmembers()
        changed = rng.randrange(len(members))
        for number, member in enumerate(members):
            file = old.extractfile(member)
            assert file is not None
            data = file.read()
            if number == changed:
                member, data = odd_member(member, data, rng)
            new.addfile(member, io.BytesIO(data))
    return out.getvalue()


def odd_member(
    member: tarfile.TarInfo, content: bytes, rng: random.Random
) -> tuple[tarfile.TarInfo, bytes]:
    """Another name, kind or content."""
    action = rng.random()
    if action < 0.3:
        texts = [text for text in ODD_TEXTS if text and "\ud800" not in text and "\x00" not in text]
        name = rng.choice((*texts, "/etc/x", "../x", "a/../../b", "0", ".hidden"))[:90]
        member.name = name + rng.choice(("", ".png", ".cls", ".json", ".png.png"))
    elif action < 0.5:
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"Z", b"S")
        member.type = rng.choice(kinds)
        member.linkname = rng.choice(("/etc/passwd", "../x", "0.png"))
        content = b""
    elif member.name.endswith(".json"):
        odd = json.dumps({"label": odd_value(rng)}).encode()
        content = rng.choice((b"[" * 100_000, odd, odd, b"{", b"9" * 9999))
    else:
        content = rng.choice((b"", rng.randbytes(50), b"\xff\xfe", b"-1", b"x" * 2_000_000))
    member.size = len(content)
    return member, content
