"""Test pictures inside the page, each with what it is and what the model took it for."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PIL import Image

from fullmatch.report.markup import Markup, tag
from fullmatch.report.runs import Predictions
from fullmatch.report.tables import PERCENT

LONG = 20  # letters of a file name, two lines on a phone
SIDE = 96  # pixels; enough to recognise a picture, and a page of them stays small


@dataclass(frozen=True)
class Pictures:
    """The test pictures by position; whoever can read them hands them in."""

    image: Callable[[int], Image.Image]
    name: Callable[[int], str]  # its file, with the folders from the data on, or its number


def gallery(
    pictures: Pictures, chosen: Sequence[int], found: Predictions, classes: Sequence[str]
) -> Markup:
    cards = []
    for at in chosen:
        true, predicted = classes[found.labels[at]], classes[found.predicted[at]]
        sure = f"{100 * found.confidence[at]:.0f}{PERCENT}"
        file = pictures.name(at)
        name = file.rpartition("/")[2]
        image = tag(
            "img",
            src=data_address(pictures.image(at)),
            alt=f"{name}: it is {true}; the model said {predicted}, {sure} sure",
        )
        said = f"said {predicted}, {'right' if found.right[at] else f'is {true}'}"
        words = [
            tag("span", said, class_=None if found.right[at] else "wrong"),
            tag("span", f"{sure} sure"),
            tag("span", in_short(name), class_="name", title=file),
        ]
        cards.append(tag("li", image, *words))
    return tag("ul", *cards, class_="gallery")


def in_short(name: str) -> str:
    """Files of one folder often begin alike, so the end of a long name stays."""
    return name if len(name) <= LONG else f"{name[:7]}…{name[8 - LONG :]}"


def data_address(image: Image.Image) -> str:
    """The picture as a PNG inside the page, shrunk to what is shown."""
    image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
