"""Missing benchmarks are downloaded, or an error in one line says what to do."""

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
from fullmatch.data.sources.archives import unpack_archive
from fullmatch.data.sources.benchmarks import read_benchmark
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.errors import UserError


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Benchmark]:
    """A tiny SVHN, published by a local server."""
    monkeypatch.setenv("no_proxy", "*")
    server_files = tmp_path / "server_files"
    server_files.mkdir()
    files = []
    for name, _ in DATASETS["svhn-noextra"].files:
        savemat(
            server_files / name, {"X": np.zeros((32, 32, 3, 10), "u1"), "y": np.arange(10)[:, None]}
        )
        files.append((name, hashlib.md5((server_files / name).read_bytes()).hexdigest()))
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=server_files)
    ) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        yield replace(DATASETS["svhn-noextra"], files=tuple(files), url=url)
        server.shutdown()
        thread.join()


def test_download(tmp_path: Path, published: Benchmark) -> None:
    source = read_benchmark(published, tmp_path / "data")
    assert len(source.images) == 10
    names = [path.name for path in (tmp_path / "data/svhn").iterdir()]
    assert sorted(names) == ["test_32x32.mat", "train_32x32.mat"]


def test_archive_is_downloaded_and_unpacked(tmp_path: Path, published: Benchmark) -> None:
    path = tmp_path / "server_files/svhn.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, _ in published.files:
            archive.add(tmp_path / "server_files" / name, f"svhn/{name}")
    packed = replace(published, archive=(path.name, hashlib.md5(path.read_bytes()).hexdigest()))
    assert len(read_benchmark(packed, tmp_path / "data").images) == 10
    assert published.locate(tmp_path / "data") == tmp_path / "data/svhn"
    with pytest.raises(UserError, match=r"svhn\.tar\.gz is damaged"):
        read_benchmark(replace(packed, archive=(path.name, "0" * 32)), tmp_path / "again")


def test_file_without_permission(
    tmp_path: Path, published: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_benchmark(published, tmp_path / "data")

    def deny(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(UserError, match=r"no permission to read .*train_32x32\.mat"):
        read_benchmark(published, tmp_path / "data")


def test_only_missing_files_are_downloaded(tmp_path: Path, published: Benchmark) -> None:
    read_benchmark(published, tmp_path / "data")
    (tmp_path / "data/svhn/test_32x32.mat").unlink()
    (tmp_path / "server_files/train_32x32.mat").unlink()
    assert len(read_benchmark(published, tmp_path / "data").images) == 10


def test_damaged_download_is_detected(tmp_path: Path, published: Benchmark) -> None:
    (tmp_path / "server_files/test_32x32.mat").write_bytes(b"an error page")
    with pytest.raises(UserError, match=r"test_32x32\.mat is damaged"):
        read_benchmark(published, tmp_path / "data")


def test_failed_download_leaves_nothing(tmp_path: Path, published: Benchmark) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        closed_url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    for url in (f"{published.url}gone/", closed_url):
        with pytest.raises(UserError, match="could not be downloaded") as caught:
            read_benchmark(replace(published, url=url), tmp_path / "data")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"digits", "fashion-mnist"}))
def test_error_lists_missing_files_and_folders(tmp_path: Path, name: str) -> None:
    benchmark = DATASETS[name]
    with pytest.raises(UserError) as caught:
        load(name, root=tmp_path / "data", download=False)
    text = str(caught.value)
    assert "\n" not in text
    assert not (tmp_path / "data").exists()
    for expected in (
        *(file for file, _ in benchmark.files),
        str(tmp_path / "data" / benchmark.folder),
        f"{name}.npz with train_x, train_y, test_x, test_y",
        "FULLMATCH_DATA",
    ):
        assert expected in text


def test_error_lists_only_missing_files(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(b"")
    with pytest.raises(UserError, match="put the files data_batch_2, ") as caught:
        load("cifar10", root=tmp_path, download=False)
    assert "data_batch_1" not in str(caught.value)


def test_nothing_is_unpacked_outside_the_folder_without_a_filter(
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
        unpack_archive(archive, tmp_path / "here")
    assert [p.name for p in sorted((tmp_path / "here").rglob("*"))] == ["good", "inside.txt"]
    assert not (tmp_path / "outside.txt").exists()
