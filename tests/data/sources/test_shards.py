"""Shards: pictures and labels by key, and archives that cannot be trusted."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fullmatch.data.sources.shards import read_shard, split_name
from fullmatch.errors import UserError
from tests.encoded_pictures import Member, encode, members, noise, write_shard

PICTURES = [encode(pixels) for pixels in noise(3)]


def test_pictures_and_labels_by_key(tmp_path: Path) -> None:
    files = [
        *(("a/0.PNG", PICTURES[0]), ("a/0.cls", b"dog\n"), ("a/1.cls", b"3"), ("readme.txt", b"x")),
        *(("b/0.png", PICTURES[1]), ("b/0.json", b'{"label": "cat", "width": 8}')),
        *(("a/1.png", PICTURES[2]), ("a/1.seg.png", b"mask"), ("a/1.json", b'{"width": 8}')),
        *(("a/.hidden.png", b""),),
    ]
    part = read_shard(write_shard(tmp_path / "test-000.tar", files))
    assert part.split == "test"
    labels = [None if code < 0 else part.names[code] for code in part.labels.tolist()]
    content = [part.pictures.open(row).read() for row in range(3)]  # type: ignore[union-attr]
    found = dict(zip(content, labels, strict=True))
    assert found == {PICTURES[0]: "dog", PICTURES[1]: "cat", PICTURES[2]: "3"}


@pytest.mark.parametrize(
    "label", [b'{"label": null}', b'{"label": -1}', b'{"label": ""}', b"{}", b"[]"]
)
def test_unlabeled(tmp_path: Path, label: bytes) -> None:
    part = read_shard(write_shard(tmp_path / "a.tar", [("0.png", PICTURES[0]), ("0.json", label)]))
    assert part.labels.tolist() == [-1]


def test_names() -> None:
    assert split_name("a.b/c.d.jpg") == ("a.b/c", ".d.jpg")
    assert split_name("c.JPG") == ("c", ".jpg")
    assert split_name("c") == ("c", "")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("0.png", b""), ("0.jpg", b"")], "0.jpg is a second picture beside 0.png"),
        ([("0.cls", b"cat")], "0 has a label but no picture"),
        ([("0.png", b""), ("0.cls", b"a"), ("0.json", b'{"label": "b"}')], "0.json has the label"),
        ([("0.png", b""), ("0.cls", b"\xff")], "0.cls is not UTF-8"),
        ([("0.png", b""), ("0.json", b"{")], "0.json is not JSON"),
        ([("0.png", b""), ("0.json", b'{"label": [1]}')], r"0.json has the label '\[1\]'"),
        ([("0.png", b""), ("0.cls", b" " * 2**21)], "0.cls is too large for a label"),
        ([("../0.png", b"")], r"../0.png points outside the archive"),
        ([("/etc/0.png", b"")], "/etc/0.png points outside the archive"),
        ([("a/../../0.cls", b"")], "points outside the archive"),
        ([("readme.txt", b"")], "has no pictures; pack files such as"),
        ([], "has no pictures; pack files such as"),
    ],
)
def test_shards_that_cannot_be_used(tmp_path: Path, files: list[Member], message: str) -> None:
    path = write_shard(tmp_path / "a.tar", files)
    with pytest.raises(UserError, match=message) as error:
        read_shard(path)
    assert str(error.value).startswith(str(path))


def test_links(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("0.png")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(UserError, match=r"0.png is a link or not a plain file"):
        read_shard(tmp_path / "a.tar")


def test_a_cut_shard_is_noticed_wherever_it_ends(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.tar", members(PICTURES, ["a", "b", "a"]))
    content = path.read_bytes()
    end = len(content.rstrip(b"\0"))
    whole = len(read_shard(path).pictures)
    assert whole == 3
    for size in range(0, end + 1, 200):
        path.write_bytes(content[:size])
        with pytest.raises(UserError, match=r"a.tar is not a tar file, or it is cut off"):
            read_shard(path)


@pytest.mark.parametrize(("name", "message"), [("a.tar.gz", "is compressed"), ("a.tar", "cut off")])
def test_compressed_shards(tmp_path: Path, name: str, message: str) -> None:
    with tarfile.open(tmp_path / name, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("0.png"), io.BytesIO())
    with pytest.raises(UserError, match=message):
        read_shard(tmp_path / name)


def test_a_shard_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*a.tar: No such file"):
        read_shard(tmp_path / "a.tar")


def test_labels_may_be_any_json(tmp_path: Path) -> None:
    values: list[Any] = [0, "0", 0.0]
    files: list[Member] = []
    for number, value in enumerate(values):
        files.append((f"{number}.png", PICTURES[number]))
        files.append((f"{number}.json", json.dumps({"label": value}).encode()))
    part = read_shard(write_shard(tmp_path / "a.tar", files))
    assert part.names == ("0",)
    assert part.labels.tolist() == [0, 0, 0]


def test_a_label_that_is_nested_too_deeply(tmp_path: Path) -> None:
    files = [("0.png", PICTURES[0]), ("0.json", b"[" * 100_000)]
    with pytest.raises(UserError, match=r"0\.json is not JSON"):
        read_shard(write_shard(tmp_path / "a.tar", files))


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tar")
    with pytest.raises(UserError, match="not a regular file"):
        read_shard(tmp_path / "a.tar")
