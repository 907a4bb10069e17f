"""Thumbnails inside the page, each with its prediction, and its label if known."""

import base64
import io
from collections.abc import Sequence

from PIL import Image

from fullmatch.pages.markup import Markup, tag
from fullmatch.reports.tables import PERCENT
from fullmatch.storage.predictions import Album

LONGEST_NAME = 20  # characters of a file name, two lines on a phone
SIDE = 96  # pixels: enough to recognize a picture, and the page stays small


def render_gallery(album: Album, positions: Sequence[int], classes: Sequence[str]) -> Markup:
    items = (render_thumbnail(album, at, classes) for at in positions)
    return tag("ul", *items, class_="gallery")


def render_thumbnail(album: Album, at: int, classes: Sequence[str]) -> Markup:
    predictions = album.predictions
    predicted = classes[predictions.predicted[at]]
    label = classes[predictions.labels[at]] if predictions.labels[at] >= 0 else ""
    confidence = f"{100 * predictions.confidence[at]:.0f}{PERCENT}"
    path = album.name(at)
    name = path.rpartition("/")[2]
    verdict = ", correct" if predictions.right[at] else f", is {label}" if label else ""
    css_class = "wrong" if predictions.wrong[at] else None
    alt = f"{name}: predicted {predicted}{verdict}, {confidence} confident"
    return tag(
        "li",
        tag("img", src=to_data_url(album.image(at)), alt=alt),
        tag("span", f"predicted {predicted}{verdict}", class_=css_class),
        tag("span", f"{confidence} confident"),
        tag("span", shorten_name(name), class_="name", title=path),
    )


def shorten_name(name: str) -> str:
    """Cut out the middle: files of one folder often differ only at the end."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:7]}…{name[8 - LONGEST_NAME :]}"


def to_data_url(image: Image.Image) -> str:
    """The picture as a PNG inside the page, no larger than it is shown."""
    image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
