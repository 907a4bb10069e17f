"""A screenshot of the labeling page for the docs: python -m tests.labeling.screenshot FILE."""

import base64
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import browser, prefer, resize, visit
from tests.labeling.serving import serving
from tests.own_pictures import save

SIDES = {"circle": 60, "pentagon": 5, "square": 4, "triangle": 3}


def shape(kind: str, seed: int) -> Image.Image:
    """A shape with random position, rotation and color."""
    rng = np.random.default_rng(seed)
    paper = Image.new("RGB", (420, 300), tuple(rng.integers(190, 245, 3).tolist()))
    x, y, size = rng.integers(150, 270), rng.integers(120, 180), rng.integers(70, 110)
    ImageDraw.Draw(paper).regular_polygon(
        (int(x), int(y), int(size)),
        SIDES[kind],
        rotation=int(rng.integers(360)),
        fill=tuple(rng.integers(30, 190, 3).tolist()),
    )
    return paper


def screenshot(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        home = Path(folder) / "pictures"
        for number, kind in enumerate(SIDES):
            save(shape(kind, number), home / "labeled" / kind / "1.png")
            for i in range(8):
                name = f"IMG_{100 * i + number:04d}.jpg"
                save(shape(kind, 100 * i + number), home / "unlabeled" / name)
        with serving(home, 20) as server:
            prefer(driver, "light")
            resize(driver, 900, 840)
            server.queue.label(0, "circle")
            visit(driver, server.address)
            WebDriverWait(driver, 10).until(lambda d: d.execute_script("return !waiting"))
            capture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            path.write_bytes(base64.b64decode(capture["data"]))


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]))
