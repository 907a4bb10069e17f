"""What the fuzzer damages, and which command reads it."""

import os
import random
import shutil
import socket
import threading
from pathlib import Path
from typing import NamedTuple

import torch
from benchmarks.fuzz_originals import (
    Case,
    Originals,
    Prepared,
    make_feature_pass,
    run_fullmatch,
)
from benchmarks.mutations import BYTES, damage
from benchmarks.odd_values import ODD_TEXTS
from PIL import Image


def damage_run(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    """A file of a run folder, read by any command."""
    run = place / "run"
    shutil.copytree(originals.run, run)
    names = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    chosen = rng.choice(names)
    how = damage(chosen, rng)
    if rng.random() < 0.5:
        (run / "manifest.json").unlink(missing_ok=True)  # so that it does not tell
    if rng.random() < 0.1:
        (run / "result.json").unlink(missing_ok=True)
    pictures = originals.pictures / "unlabeled"
    command = rng.choice((
        ("resume", run), ("evaluate", run), ("predict", run, pictures), ("report", run),
        ("card", run), ("suggest", run, "-n", 2), ("verify", run),
        ("report", run, originals.run, "--out", place / "both.html"),
        ("train", originals.pictures, "--from", run, "--out", place / "new", "--steps", 1),
    ))  # fmt: skip
    what = f"{chosen.relative_to(run)} {how}: {command[0]}"
    return what, lambda: run_fullmatch(*command)


def damage_config(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    path = copy_file(originals, "config.toml", place)
    how = damage(path, rng)

    def start() -> None:
        from fullmatch.experiment.settings import resolve

        resolve(file=path, assignments=("training.steps=1",))

    return f"config {how}", start


def damage_table(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    (place / "files").mkdir()
    (place / "pictures").symlink_to(originals.pictures)
    path = place / "files" / "labels.csv"
    shutil.copy(originals.files / "labels.csv", path)
    how = damage(path, rng)
    return f"CSV {how}", lambda: read_pictures(path)


def read_pictures(path: Path | str) -> None:
    """Read every picture, as training does."""
    from fullmatch import data

    source = data.load(str(path), size=16)
    source.images.read(torch.arange(len(source.images)))


def damage_split(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    path = copy_file(originals, "split.json", place)
    how = damage(path, rng)

    def load() -> None:
        from fullmatch import data

        source = data.load("digits")
        split = data.Split.load(path)
        split.check("digits", source.labels)
        data.SemiDataset.from_source(source, split)

    return f"split {how}", load


def damage_arrays(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    path = copy_file(originals, "arrays.npz", place)
    how = damage(path, rng)

    def load() -> None:
        from fullmatch import data

        data.load(str(path))

    return f"arrays {how}", load


def damage_weights(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    path = copy_file(originals, rng.choice(("weights.safetensors", "weights.pt")), place)
    how = damage(path, rng)

    def load() -> None:
        from fullmatch.models import build_network
        from fullmatch.models.weights import load_weights

        load_weights(path, build_network("wrn-10-1", 2, (3, 16, 16)), "wrn-10-1", ("a", "b"))

    return f"{path.name} {how}", load


def damage_picture(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    pictures = place / "pictures"
    shutil.copytree(originals.pictures, pictures)
    chosen = rng.choice(sorted(pictures.rglob("*.png")))
    how = change_picture(chosen, rng)
    if rng.random() < 0.5:
        return f"picture {how}: read", lambda: read_pictures(pictures)
    return f"picture {how}: predict", lambda: run_fullmatch("predict", originals.run, pictures)


def change_picture(path: Path, rng: random.Random) -> str:
    """Another format, then damage; or another name."""
    if rng.random() < 0.2:
        odd = rng.choice([text for text in ODD_TEXTS if text.strip() and "/" not in text])
        name = odd.encode("utf-8", "surrogatepass").replace(b"\0", b"")[:200]
        os.rename(os.fsencode(path), os.path.join(os.fsencode(path.parent), b"x" + name + b".png"))
        return "name"
    format = rng.choice(("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM"))
    with Image.open(path) as image:
        image.convert("RGB").save(path, format=format)
    return f"{format} {damage(path, rng)}"


def send_requests(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    """A damaged request to the labeling page, which must still answer afterwards."""
    pictures = place / "pictures"
    shutil.copytree(originals.pictures, pictures)
    request = make_request(rng)

    def serve() -> None:
        from fullmatch.inference.suggestion import Suggestion
        from fullmatch.labeling.label_table import LabelTable, list_pictures
        from fullmatch.labeling.queue import LabelQueue
        from fullmatch.labeling.server import create_server

        table = LabelTable(place / "labels.csv", list_pictures(pictures))
        shown = [Suggestion(name, "", None, "any") for name in table.unlabeled()]
        server = create_server(LabelQueue(table, shown))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ask(server.server_port, request.replace(b"TOKEN", server.token.encode()))
        host = f"127.0.0.1:{server.server_port}"
        good = f"GET /{server.token}/state HTTP/1.1\r\nHost: {host}\r\n\r\n"
        answer = ask(server.server_port, good.encode())
        assert answer.startswith(b"HTTP/1.0 200"), answer[:200]

    return "request", serve


def make_request(rng: random.Random) -> bytes:
    body = rng.choice((b'{"number": 0, "label": "cat"}', b'{"number": 1}', b'{"name": "fox"}'))
    if rng.random() < 0.7:
        body = rng.choice(BYTES)(body, rng)[:100_000]
    action = rng.choice(("label", "skip", "undo", "class", "state", "picture/0", "picture/-1"))
    method = rng.choice(("GET", "POST", "POST", "PUT", "HEAD"))
    length = rng.choice((len(body), len(body), 10**9, -1, "x"))
    head = f"{method} /TOKEN/{action} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
    head += f"application/json\r\nContent-Length: {length}\r\n\r\n"
    request = head.encode() + body
    return rng.choice(BYTES)(request, rng)[:200_000] if rng.random() < 0.4 else request


def ask(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)
        except OSError:
            return b""


def damage_encoded(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    """Pictures in Parquet, Arrow and tar files."""
    name = rng.choice(("table.parquet", "table.arrow", "shard.tar"))
    path = copy_file(originals, name, place)
    how = damage(path, rng)
    hub = rng.random() < 0.2 and not name.endswith(".tar")
    return f"{name} {how}", lambda: read_pictures(f"hf:{path}" if hub else path)


def damage_feature_cache(originals: Originals, place: Path, rng: random.Random) -> Prepared:
    """Rows of an interrupted feature pass, which the next one continues."""
    folder = place / "cache"
    shutil.copytree(originals.files / "cache", folder)
    chosen = rng.choice(sorted(folder.iterdir()))
    how = damage(chosen, rng)

    def read() -> None:
        from fullmatch.experiment.feature_pass import read_descriptors

        work, store = make_feature_pass(folder)
        read_descriptors(folder, work.model.identity, store, 0, 0)
        shape = (len(store), 1 + len(work.body.sizes), sum(work.model.widths))
        work.open(store, shape, "0 0")

    return f"feature cache {chosen.suffix} {how}", read


def copy_file(originals: Originals, name: str, place: Path) -> Path:
    return Path(shutil.copy(originals.files / name, place / name))


class Kind(NamedTuple):
    """A kind of case, how often it is drawn, and how many damaged files one process reads."""

    case: Case
    weight: int
    files: int = 1


CASES: dict[str, Kind] = {
    "run": Kind(damage_run, 4),
    "config": Kind(damage_config, 2, 20),
    "csv": Kind(damage_table, 2, 20),
    "split": Kind(damage_split, 2, 20),
    "npz": Kind(damage_arrays, 2, 20),
    "weights": Kind(damage_weights, 2, 20),
    "pictures": Kind(damage_picture, 3),
    "requests": Kind(send_requests, 1, 5),
    "encoded": Kind(damage_encoded, 4, 20),
    "features": Kind(damage_feature_cache, 1, 20),
}
