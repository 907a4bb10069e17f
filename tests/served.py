"""Finished runs, trained once per process, and picture files of every kind."""

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from fullmatch import data
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.result import Calibration
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import write_pictures
from tests.small_runs import finish

QUICK = ("training.batch=20", "training.ratio=3", "training.steps=40", "training.ema=0.9")


@cache
def shared_folder() -> Path:
    place = Path(tempfile.mkdtemp(prefix="fullmatch-served-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def digits_run(algorithm: str = "fullmatch") -> Path:
    """A run that is better than chance on digits; tests must not change it."""
    out = shared_folder() / algorithm
    if out.exists():
        return out
    chosen = resolve(algorithm=algorithm, assignments=QUICK)
    return finish(start(chosen, RunFolder.planned("digits", out))).folder.path


@cache
def pets_run() -> Path:
    """A run on color pictures, too few for novelty detection, without test pictures."""
    home = shared_folder() / "pets"
    for label in ("cat | tiger", "dög 2"):
        write_pictures(home / "labeled" / label)
    write_pictures(home / "unlabeled", 6)
    chosen = resolve(
        data=str(home),
        assignments=("model.name=wrn-10-1", "training.batch=4", "training.steps=2"),
    )
    return finish(
        start(chosen, RunFolder.planned("pets", shared_folder() / "pets-run"))
    ).folder.path


def copy_run(run: Path, to: Path, **changes: Any) -> Path:
    """A copy of a run, with changes to its result."""
    shutil.copytree(run, to)
    folder = RunFolder(to)
    folder.write_result(replace(folder.read_result(), **changes))
    return to


def calibrated_at(temperature: float) -> Calibration:
    return Calibration(temperature=temperature, images=100)


def digit_files(folder: Path, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Test digits as PNG files, and their pixels by path."""
    folder.mkdir(parents=True, exist_ok=True)
    test = data.load("digits").test
    assert test is not None
    images = test.read(torch.arange(count)).numpy()
    for number, pixels in enumerate(images):
        Image.fromarray(pixels[0]).save(folder / f"{number:03d}.png")
    return {str(folder / f"{number:03d}.png"): pixels for number, pixels in enumerate(images)}


def odd_files(folder: Path) -> dict[str, bool]:
    """Files of every kind by name, and whether they can be read as pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = Image.effect_noise((40, 30), 80)
    expected: dict[str, bool] = {}

    def keep(name: str, readable: bool) -> Path:
        expected[name] = readable
        return folder / name

    picture.save(keep("gray.png", True))
    picture.convert("CMYK").save(keep("cmyk.jpg", True))
    picture.convert("P").save(keep("palette.png", True), transparency=0)
    picture.convert("RGBA").save(keep("alpha.webp", True))
    Image.fromarray(np.asarray(picture).astype(np.uint16) * 257).save(keep("deep.png", True))
    picture.resize((1, 1)).save(keep("one pixel.png", True))
    frames = [picture.rotate(90 * turn) for turn in range(3)]
    frames[0].save(keep("animated.gif", True), save_all=True, append_images=frames[1:])
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(keep("rotated.jpg", True), exif=exif)
    picture.save(keep("a png called.jpg", True), "PNG")
    picture.save(keep("no extension", True), "PNG")
    picture.save(keep("наме ä.png", True))
    picture.save(keep(f"{'long' * 60}.png", True))
    keep("empty.jpg", False).write_bytes(b"")
    keep("page.jpg", False).write_text("<html>404</html>")
    picture.save(folder / "complete.jpg")
    keep("cut.jpg", False).write_bytes((folder / "complete.jpg").read_bytes()[:300])
    (folder / "complete.jpg").unlink()
    keep("notes.txt", False).write_text("not a picture")
    keep("apple.heic", False).write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    # Its header claims 50,000 by 50,000 pixels.
    bomb = bytearray((folder / "gray.png").read_bytes())
    bomb[16:24] = (50_000).to_bytes(4, "big") * 2
    keep("bomb.png", False).write_bytes(bomb)
    keep("nowhere.png", False).symlink_to(folder / "gone.png")
    keep("itself.png", False).symlink_to(folder / "itself.png")
    (folder / "back").symlink_to(folder)
    for hidden in (".DS_Store", "Thumbs.db", ".hidden.png"):
        (folder / hidden).write_bytes(b"x")
    return expected
