"""Takes the picture of the map in the docs: python -m tests.reports.map_screenshot FILE."""

import base64
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.linear_model import LogisticRegression

from fullmatch import data
from fullmatch.data import Source
from fullmatch.inference.map_thumbnails import make_thumbnails
from fullmatch.inference.picture_map import build_map
from fullmatch.pages.frame import render_page, write_page
from fullmatch.reports.map import make_map_section
from fullmatch.storage.features import Part, PictureFeatures
from fullmatch.storage.picture_map import PictureMap
from tests.browser import browser, prefer, resize, visit

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LABELED = 100


def map_digits(source: Source) -> PictureMap:
    """Digits by their pixels, with 100 labels of which four are wrong."""
    assert source.test is not None
    assert source.test_labels is not None
    stores = (source.images, source.test)
    pixels = torch.cat([store.read(torch.arange(len(store))).flatten(1) for store in stores])
    centered = pixels.numpy() / 127.5 - 1
    count = len(source.images)
    targets = torch.cat([source.labels, source.test_labels]).numpy()
    parts = np.full(len(targets), Part.UNLABELED, np.uint8)
    parts[:LABELED] = Part.LABELED
    parts[count:] = Part.TEST
    suspect = np.zeros(len(targets), bool)
    suspect[:LABELED:25] = True
    model = LogisticRegression(C=0.5, max_iter=1000).fit(centered[:LABELED], targets[:LABELED])
    features = PictureFeatures(
        features=(centered / np.linalg.norm(centered, axis=1, keepdims=True)).astype(np.float32),
        parts=parts,
        labels=np.where(parts == Part.UNLABELED, -1, (targets + suspect) % 10),
        names=tuple(f"image {number}" for number in range(len(targets))),
        classes=CLASSES,
        weights="pixels",
    )
    probabilities = model.predict_proba(centered)
    return build_map(features, probabilities, np.zeros(len(targets), bool), suspect, seed=0)


def take_screenshot(page: Path, path: Path) -> None:
    """Of the section with one picture open."""
    with browser() as driver:
        prefer(driver, "light")
        resize(driver, 1100, 1000)
        visit(driver, page.as_uri())
        canvas = driver.find_element(By.ID, "map-canvas")
        canvas.send_keys(Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
        driver.execute_script("arguments[0].blur()", canvas)
        driver.execute_async_script("setTimeout(arguments[0], 500)")
        box = driver.find_element(By.ID, "map").rect
        clip = {"x": 0, "y": box["y"], "width": 1100, "height": box["height"] + 16, "scale": 1}
        options = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        screenshot = driver.execute_cdp_cmd("Page.captureScreenshot", options)
        path.write_bytes(base64.b64decode(screenshot["data"]))


if __name__ == "__main__":
    source = data.load("digits")
    picture_map = map_digits(source)
    section = make_map_section(picture_map, make_thumbnails(picture_map, source))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "map.html"
        write_page(page, render_page("Map", "", [section]))
        take_screenshot(page, Path(sys.argv[1]))
