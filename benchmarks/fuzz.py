"""Damaged files and requests: every command must end well or in one line.

    python benchmarks/fuzz.py [--count 5000] [--first 0] [--minutes 20] [--only run] [--record]

Case N is a function of N: which file is damaged how, and which command reads it. Each case runs in
a process of its own with 10 seconds of computing and 2 GiB. `--first` continues where an earlier
call ended; `--record` appends the figures to docs/results/reliability.jsonl. Only for Linux.
"""

import argparse
import collections
import contextlib
import hashlib
import io
import os
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.isolation import Ending, Outcome, run_isolated
from benchmarks.mutations import BYTES, ODD_TEXTS, damage
from benchmarks.reliability import record_figures
from PIL import Image

STEPS = 4
SETTINGS = (
    "training.batch=4", "training.ratio=2", f"training.steps={STEPS}", "training.log_every=2",
    "training.checkpoint_every=2", "model.name=wrn-10-1", "data.size=16",
)  # fmt: skip


class Originals(NamedTuple):
    """Undamaged files that every case starts from."""

    place: Path

    @property
    def pictures(self) -> Path:
        return self.place / "pictures"

    @property
    def run(self) -> Path:
        return self.place / "run"

    @property
    def files(self) -> Path:
        return self.place / "files"


Prepared = tuple[str, Callable[[], object]]  # what is damaged how, and what reads it
Case = Callable[[Originals, Path, random.Random], Prepared]


def make_originals(place: Path) -> Originals:
    """Pictures of two classes, a finished run on them, and one file of each other kind."""
    from fullmatch import data

    originals = Originals(place)
    rng = np.random.default_rng(0)
    for folder, count in (("labeled/cat", 4), ("labeled/dog", 4), ("test/cat", 3), ("test/dog", 3)):
        write_pictures(originals.pictures / folder, count, rng)
    write_pictures(originals.pictures / "unlabeled", 6, rng)
    train_run(originals.pictures, originals.run)
    originals.files.mkdir()
    names = sorted(path.relative_to(place) for path in originals.pictures.rglob("*.png"))
    rows = [f"../{name},{name.parts[2] if len(name.parts) == 4 else ''}," for name in names]
    (originals.files / "labels.csv").write_text("path,label,split\n" + "\n".join(rows) + "\n")
    images = rng.integers(0, 255, (40, 8, 8), dtype=np.uint8)
    labels = np.arange(40) % 4
    np.savez(
        originals.files / "arrays.npz",
        train_x=images, train_y=labels, test_x=images[:8], test_y=labels[:8],
    )  # fmt: skip
    source = data.load("digits")
    split = data.draw_split(source.labels, 40, 0, 10, "digits")
    split.save(originals.files / "split.json")
    shutil.copy(originals.run / "config.toml", originals.files / "config.toml")
    shutil.copy(originals.run / "model.safetensors", originals.files / "weights.safetensors")
    torch.save({"state_dict": {"a": torch.zeros(3)}}, originals.files / "weights.pt")
    return originals


def warm_up(originals: Originals) -> None:
    """Import here what cases need, so that not each of them does."""
    run = originals.place / "warm"
    shutil.copytree(originals.run, run)
    for command in (
        ("evaluate", run), ("predict", run, originals.pictures), ("report", run), ("card", run),
        ("suggest", run, "-n", 2), ("resume", run), ("verify", run),
    ):  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            run_fullmatch(*command)
    shutil.rmtree(run)


def write_pictures(folder: Path, count: int, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        pixels = rng.integers(0, 255, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")


def train_run(pictures: Path, out: Path) -> None:
    """A finished run of a few steps, as `fullmatch train` leaves it."""
    from fullmatch.experiment.settings import resolve
    from fullmatch.experiment.start import start
    from fullmatch.storage.run_folder import RunFolder

    config = resolve(data=str(pictures), assignments=SETTINGS)
    for _ in start(config, RunFolder.planned("fuzz", out)).records():
        pass
    run_fullmatch("resume", out)


def run_fullmatch(*arguments: object) -> None:
    from fullmatch.cli.app import run_command

    run_command([str(argument) for argument in arguments])


# Cases


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


def read_pictures(path: Path) -> None:
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
    """Damaged requests to the labeling page, which must still answer afterwards."""
    pictures = place / "pictures"
    shutil.copytree(originals.pictures, pictures)
    requests = [make_request(rng) for _ in range(8)]

    def serve() -> None:
        from fullmatch.inference.suggestion import Suggestion
        from fullmatch.labeling.label_table import LabelTable, list_pictures
        from fullmatch.labeling.queue import LabelQueue
        from fullmatch.labeling.server import create_server

        table = LabelTable(place / "labels.csv", list_pictures(pictures))
        shown = [Suggestion(name, "", None, "any") for name in table.unlabeled()]
        server = create_server(LabelQueue(table, shown))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for request in requests:
            ask(server.server_port, request.replace(b"TOKEN", server.token.encode()))
        host = f"127.0.0.1:{server.server_port}"
        good = f"GET /{server.token}/state HTTP/1.1\r\nHost: {host}\r\n\r\n"
        answer = ask(server.server_port, good.encode())
        assert answer.startswith(b"HTTP/1.0 200"), answer[:200]

    return "requests", serve


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


def copy_file(originals: Originals, name: str, place: Path) -> Path:
    return Path(shutil.copy(originals.files / name, place / name))


CASES: dict[str, tuple[int, Case]] = {  # with their weights
    "run": (10, damage_run),
    "config": (3, damage_config),
    "csv": (2, damage_table),
    "split": (2, damage_split),
    "npz": (2, damage_arrays),
    "weights": (2, damage_weights),
    "pictures": (3, damage_picture),
    "requests": (1, send_requests),
}


def run_case(number: int, originals: Originals, only: str | None = None) -> tuple[str, Ending]:
    """One case, in a folder of its own that is removed afterwards."""
    rng = random.Random(f"fullmatch {number}")
    kinds = [only] if only else list(CASES)
    kind = rng.choices(kinds, [CASES[name][0] for name in kinds])[0]
    place = originals.place / f"case-{number}"
    place.mkdir()
    try:
        what, work = CASES[kind][1](originals, place, rng)
        before = os.getcwd()
        os.chdir(place)
        try:
            ending = run_isolated(work, originals.place / "log")
        finally:
            os.chdir(before)
    finally:
        shutil.rmtree(place)
    if ending.outcome is Outcome.OK and says_nan(ending.output):
        ending = Ending(Outcome.NONSENSE, ending.output)
    return f"{kind}: {what}", ending


def says_nan(output: str) -> bool:
    return any(word.strip("%,()") in ("nan", "inf") for word in output.split())


def hash_pictures(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def run_cases(
    place: Path, first: int, count: int, only: str | None = None, seconds: float = 1e9
) -> collections.Counter[str]:
    """Run the cases; print those that ended badly; return how many ended how."""
    originals = make_originals(place)
    warm_up(originals)
    pictures = hash_pictures(originals.pictures)
    outcomes = collections.Counter[str]()
    end = time.monotonic() + seconds
    for number in range(first, first + count):
        what, ending = run_case(number, originals, only)
        outcomes[ending.outcome.value] += 1
        if not ending.outcome.good:
            print(f"case {number}: {ending.outcome.value}: {what}\n{ending.output[-1500:]}\n")
        if number % 100 == 99:
            print(f"{number + 1}: {dict(outcomes)}", flush=True)
        if time.monotonic() > end:
            break
    if hash_pictures(originals.pictures) != pictures:
        outcomes["pictures changed"] += 1
    return outcomes


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=home) as place:
        seconds = 60 * options.minutes
        outcomes = run_cases(Path(place), options.first, options.count, options.only, seconds)
    seconds = round(time.monotonic() - began)
    print(f"{outcomes.total()} cases in {seconds} s: {dict(outcomes)}")
    if options.record:
        record_figures("fuzz", first=options.first, seconds=seconds, **outcomes)
    bad = outcomes.total() - outcomes["ok"] - outcomes["refused"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
