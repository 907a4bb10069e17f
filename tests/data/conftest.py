"""Fixtures that write small pictures and folders."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Draw = Callable[..., Path]


@pytest.fixture
def draw_picture() -> Draw:
    """Writes a picture of one color, in the format of its extension."""

    def draw(path: Path, color: object = (200, 30, 30), size: tuple[int, int] = (40, 40)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = "L" if isinstance(color, int) else "RGB"
        Image.new(mode, size, color).save(path)  # type: ignore[arg-type]
        return path

    return draw


@pytest.fixture
def pets(tmp_path: Path, draw_picture: Draw) -> Path:
    """Two classes with three labeled pictures each, five unlabeled and two test pictures."""
    for label, color in (("cat", (200, 30, 30)), ("dog", (30, 30, 200))):
        for i in range(3):
            draw_picture(tmp_path / f"pets/labeled/{label}/{i}.png", color)
        draw_picture(tmp_path / f"pets/test/{label}/0.png", color)
    for i in range(5):
        draw_picture(tmp_path / f"pets/unlabeled/deep/{i}.jpg", (30, 200, 30))
    return tmp_path / "pets"


@pytest.fixture
def gradient() -> np.ndarray:
    """A gray ramp from left (0) to right (255)."""
    return np.tile(np.linspace(0, 255, 64).astype(np.uint8), (64, 1))
