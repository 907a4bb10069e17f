"""Generated photos, large and detailed enough for a pretrained network to tell their kinds."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from tests.own_pictures import save

KINDS = ("balls", "bricks")
SIZE = (144, 120)


def photo(kind: str, seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Balls on a lawn, a wall of bricks, or a starry sky; different for every seed."""
    rng = np.random.default_rng(seed)
    painters = {"balls": paint_balls, "bricks": paint_bricks, "sky": paint_sky}
    image = painters[kind](rng, size)
    grain = rng.normal(scale=12, size=(size[1] // 2, size[0] // 2))
    grain = np.asarray(Image.fromarray(grain.astype(np.float32)).resize(size))
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.7)), np.float32)
    return Image.fromarray((pixels + grain[:, :, None]).clip(0, 255).astype(np.uint8))


def paint_balls(rng: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, (60, 120 + int(rng.integers(40)), 50))
    draw = ImageDraw.Draw(image)
    for _ in range(400):  # blades of grass
        x, y = (int(rng.integers(side)) for side in size)
        shade = int(rng.integers(90, 200))
        draw.line((x, y, x + int(rng.integers(-4, 5)), y - 9), fill=(shade // 3, shade, shade // 3))
    for _ in range(int(rng.integers(2, 5))):
        x, y = (int(rng.integers(side)) for side in size)
        radius, color = int(rng.integers(10, 26)), tuple(rng.integers(120, 256, 3).tolist())
        for shrink in range(radius, 0, -2):  # lighter toward the middle
            light = tuple(int(c + (255 - c) * 0.7 * (1 - shrink / radius)) for c in color)
            draw.ellipse((x - shrink, y - shrink, x + shrink, y + shrink), fill=light)
    return image


def paint_bricks(rng: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, (170, 165, 155))
    draw = ImageDraw.Draw(image)
    height, width = int(rng.integers(10, 16)), int(rng.integers(22, 36))
    for row, y in enumerate(range(-int(rng.integers(10)), size[1], height)):
        for x in range(-(row % 2) * width // 2 - int(rng.integers(4)), size[0], width):
            red = int(rng.integers(110, 200))
            draw.rectangle((x, y, x + width - 3, y + height - 3), fill=(red, red // 2, red // 3))
    return image


def paint_sky(rng: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, (8, 8, 30 + int(rng.integers(20))))
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        x, y = (int(rng.integers(side)) for side in size)
        draw.ellipse((x, y, x + int(rng.integers(1, 4)), y + 2), fill=(255, 255, 220))
    return image


def photo_folder(folder: Path, *, labels: int = 8, unlabeled: int = 10, test: int = 0) -> Path:
    """Two kinds with this many photos per kind and no problems."""
    for number, kind in enumerate(KINDS):
        for i in range(labels):
            save(photo(kind, 1000 * number + i), folder / "labeled" / kind / f"{i}.png")
        for i in range(unlabeled):
            save(photo(kind, 1000 * number + 200 + i), folder / "unlabeled" / f"{kind}{i}.png")
        for i in range(test):
            save(photo(kind, 1000 * number + 400 + i), folder / "test" / kind / f"{i}.png")
    return folder
