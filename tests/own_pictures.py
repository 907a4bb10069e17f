"""Folders of pictures as a user would have them, and pictures to put problems into them."""

from pathlib import Path

import numpy as np
from PIL import Image

COLORS = {"brick": (170, 60, 40), "grass": (60, 150, 50), "water": (40, 80, 170)}


def picture(kind: str, seed: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """Blotches around the color of a class, different for every seed."""
    rng = np.random.default_rng(seed)
    blotches = np.asarray(COLORS[kind]) + rng.integers(-60, 60, (6, 6, 3))
    image = Image.fromarray(blotches.clip(0, 255).astype(np.uint8))
    return image.resize(size, Image.Resampling.BICUBIC)


def outlier(seed: int) -> Image.Image:
    """Black and white noise, unlike any class."""
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.choice(np.array([0, 255], np.uint8), (40, 48, 3)))


def save(image: Image.Image, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path


def clean_folder(
    folder: Path, *, labels: int = 6, unlabeled: int = 12, test: int = 0, size: int = 40
) -> Path:
    """Three classes with this many pictures per class and no problems."""
    for number, kind in enumerate(COLORS):
        start, shape = 10_000 * number, (size + 8, size)
        for i in range(labels):
            save(picture(kind, start + i, shape), folder / "labeled" / kind / f"{i}.png")
        for i in range(unlabeled):
            save(picture(kind, start + 2000 + i, shape), folder / "unlabeled" / f"{kind[0]}{i}.jpg")
        for i in range(test):
            save(picture(kind, start + 4000 + i, shape), folder / "test" / kind / f"{i}.png")
    return folder
