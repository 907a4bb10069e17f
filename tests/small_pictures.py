"""A folder of small noisy pictures, laid out as a user would."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_pictures(folder: Path, count: int = 3, side: int = 12) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(list("/".join(folder.parts[-2:]).encode()))
    for number in range(count):
        pixels = rng.integers(0, 255, (side, side, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"bild ä {number}.png")


def write_pets(folder: Path) -> Path:
    """Two classes with three labeled and three test pictures each, and six unlabeled pictures."""
    for label in ("cat", "dög 2"):
        write_pictures(folder / "pets" / "labeled" / label)
        write_pictures(folder / "pets" / "test" / label)
    write_pictures(folder / "pets" / "unlabeled", 6)
    return folder / "pets"
