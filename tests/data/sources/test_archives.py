"""Missing benchmarks are fetched when the network allows, else one line says what to do."""

import hashlib
import io
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.io import savemat

from fullmatch.data import DATASETS, load
from fullmatch.data.sources.archives import unpack
from fullmatch.data.sources.benchmarks import read
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.errors import UserError


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Benchmark]:
    """A tiny SVHN, published by a server on this machine."""
    monkeypatch.setenv("no_proxy", "*")
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    files = []
    for name, _ in DATASETS["svhn-noextra"].files:
        savemat(shelf / name, {"X": np.zeros((32, 32, 3, 10), "u1"), "y": np.arange(10)[:, None]})
        files.append((name, hashlib.md5((shelf / name).read_bytes()).hexdigest()))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=shelf)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        yield replace(DATASETS["svhn-noextra"], files=tuple(files), url=url)
        server.shutdown()
        thread.join()


def test_download(tmp_path: Path, published: Benchmark) -> None:
    source = read(published, tmp_path / "data")
    assert len(source.images) == 10
    names = [path.name for path in (tmp_path / "data/svhn").iterdir()]
    assert sorted(names) == ["test_32x32.mat", "train_32x32.mat"]


def test_archive_is_downloaded_and_unpacked(tmp_path: Path, published: Benchmark) -> None:
    path = tmp_path / "shelf/svhn.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, _ in published.files:
            archive.add(tmp_path / "shelf" / name, f"svhn/{name}")
    packed = replace(published, archive=(path.name, hashlib.md5(path.read_bytes()).hexdigest()))
    assert len(read(packed, tmp_path / "data").images) == 10
    assert published.found(tmp_path / "data") == tmp_path / "data/svhn"
    with pytest.raises(UserError, match=r"svhn\.tar\.gz is damaged"):
        read(replace(packed, archive=(path.name, "0" * 32)), tmp_path / "again")


def test_file_without_permission(
    tmp_path: Path, published: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(published, tmp_path / "data")

    def deny(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(UserError, match=r"no permission to read .*train_32x32\.mat"):
        read(published, tmp_path / "data")


def test_only_what_is_missing_is_fetched(tmp_path: Path, published: Benchmark) -> None:
    read(published, tmp_path / "data")
    (tmp_path / "data/svhn/test_32x32.mat").unlink()
    (tmp_path / "shelf/train_32x32.mat").unlink()
    assert len(read(published, tmp_path / "data").images) == 10


def test_damaged_download_is_found(tmp_path: Path, published: Benchmark) -> None:
    (tmp_path / "shelf/test_32x32.mat").write_bytes(b"an error page")
    with pytest.raises(UserError, match=r"test_32x32\.mat is damaged"):
        read(published, tmp_path / "data")


def test_failed_download_leaves_nothing(tmp_path: Path, published: Benchmark) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    for url in (f"{published.url}gone/", nobody):
        with pytest.raises(UserError, match="could not be downloaded") as caught:
            read(replace(published, url=url), tmp_path / "data")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"digits", "fashion-mnist"}))
def test_missing_files_are_listed_with_their_places(tmp_path: Path, name: str) -> None:
    benchmark = DATASETS[name]
    with pytest.raises(UserError) as caught:
        load(name, root=tmp_path / "data", download=False)
    text = str(caught.value)
    assert "\n" not in text and not (tmp_path / "data").exists()
    for expected in (
        *(file for file, _ in benchmark.files),
        str(tmp_path / "data" / benchmark.folder),
        f"{name}.npz with train_x, train_y, test_x, test_y",
        "FULLMATCH_DATA",
    ):
        assert expected in text


def test_only_missing_files_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(b"")
    with pytest.raises(UserError, match="put the files data_batch_2, ") as caught:
        load("cifar10", root=tmp_path, download=False)
    assert "data_batch_1" not in str(caught.value)


def test_without_a_filter_nothing_lands_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    made = tmp_path / "made.tar"
    with tarfile.open(made, "w") as archive:
        for name in ("good/inside.txt", "../outside.txt"):
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"hi"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    (tmp_path / "here").mkdir()
    with tarfile.open(made) as archive:
        unpack(archive, tmp_path / "here")
    assert [p.name for p in sorted((tmp_path / "here").rglob("*"))] == ["good", "inside.txt"]
    assert not (tmp_path / "outside.txt").exists()
