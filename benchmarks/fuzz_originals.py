"""Undamaged files that every case of the fuzzer starts from."""

import contextlib
import io
import random
import shutil
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from PIL import Image

if TYPE_CHECKING:
    from fullmatch.data import TensorStore
    from fullmatch.experiment.feature_pass import FeaturePass
    from fullmatch.experiment.frozen_model import FrozenModel

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
    write_features_of_run(originals)
    write_tables(originals)
    work, store = make_feature_pass(originals.files / "cache")
    work.describe(store, 0, 0, lambda *_: None)
    return originals


def write_features_of_run(originals: Originals) -> None:
    """What a run on a pretrained network has besides: features, a map and findings."""
    from fullmatch.storage.features import PictureFeatures, write_features
    from fullmatch.storage.findings import OutlierPicture, RunFindings, SuspectPicture
    from fullmatch.storage.json_files import write_json
    from fullmatch.storage.picture_map import PictureMap, write_map
    from fullmatch.storage.run_folder import RunFolder

    folder, rng = RunFolder(originals.run), np.random.default_rng(1)
    labels = np.array([0] * 4 + [1] * 4 + [-1] * 6 + [0] * 3 + [1] * 3)
    parts = np.array([0] * 8 + [1] * 6 + [2] * 6, np.uint8)
    names = tuple(f"{number}.png" for number in range(len(labels)))
    rows = rng.normal(size=(len(labels), 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    half = np.full((len(labels), 2), 0.5, np.float32)
    classes = ("cat", "dog")
    write_features(
        folder.features, PictureFeatures(rows, parts, labels, names, classes, "random", half)
    )
    none = np.zeros(len(labels), np.bool_)
    write_map(
        folder.map,
        PictureMap(
            rows[:, :2], labels.clip(0), half[:, 0], none, none, parts, labels, names, classes
        ),
    )
    suspects = (SuspectPicture(0, "0.png", "cat", "dog", 0.9),)
    write_json(folder.findings, RunFindings(suspects, (OutlierPicture(9, "9.png"),)))
    write_json(folder.strategies, ())


def write_tables(originals: Originals) -> None:
    """The pictures as Parquet, as Arrow, as a saved data set and as a tar shard."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    paths = sorted(originals.pictures.glob("labeled/*/*.png"))
    pictures = [path.read_bytes() for path in paths]
    labels = [path.parent.name for path in paths]
    table = pa.table({"image": pictures, "label": labels})
    parquet.write_table(table, originals.files / "table.parquet")
    with ipc.new_file(str(originals.files / "table.arrow"), table.schema) as writer:
        writer.write_table(table)
    with tarfile.open(originals.files / "shard.tar", "w") as tar:
        for number, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            add_member(tar, f"{number}.png", picture)
            if number % 2:
                add_member(tar, f"{number}.cls", label.encode())
            else:
                add_member(tar, f"{number}.json", b'{"label": "%s"}' % label.encode())


@cache
def make_model() -> "FrozenModel":
    from tests.frozen_runs import tiny_model

    return tiny_model()


def make_feature_pass(folder: Path) -> "tuple[FeaturePass, TensorStore]":
    """A feature pass over a few pictures, and the pictures."""
    from fullmatch.data import TensorStore
    from fullmatch.experiment.feature_pass import FeaturePass

    pixels = torch.arange(12 * 3 * 8 * 8).view(12, 3, 8, 8) % 251
    store = TensorStore(pixels.to(torch.uint8))
    return FeaturePass(make_model(), folder, torch.device("cpu")), store


def add_member(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


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
