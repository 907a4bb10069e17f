"""A folder of noisy little pictures, laid out as a user would."""

from pathlib import Path

import numpy as np
from PIL import Image


def pictures(folder: Path, count: int = 3, side: int = 12) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(list("/".join(folder.parts[-2:]).encode()))
    for number in range(count):
        pixels = rng.integers(0, 255, (side, side, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"bild ä {number}.png")


def pets_in(folder: Path) -> Path:
    """Two classes of three labeled pictures and three test pictures, and six unlabeled ones."""
    for label in ("cat", "dög 2"):
        pictures(folder / "pets" / "labeled" / label)
        pictures(folder / "pets" / "test" / label)
    pictures(folder / "pets" / "unlabeled", 6)
    return folder / "pets"
