"""Pictures inside the page, each with what the model took it for, and what it is if known."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PIL import Image

from fullmatch.pages.markup import Markup, tag
from fullmatch.report.tables import PERCENT
from fullmatch.storage.runs import Predictions

LONG = 20  # letters of a file name, two lines on a phone
SIDE = 96  # pixels; enough to recognise a picture, and a page of them stays small


@dataclass(frozen=True)
class Pictures:
    """Pictures by position; whoever can read them hands them in."""

    image: Callable[[int], Image.Image]
    name: Callable[[int], str]  # its file, with the folders from the data on, or its number
    found: Predictions  # what the model says of them


def gallery(pictures: Pictures, chosen: Sequence[int], classes: Sequence[str]) -> Markup:
    cards, found = [], pictures.found
    for at in chosen:
        predicted, known = classes[found.predicted[at]], found.labels[at] >= 0
        true = f"is {classes[found.labels[at]]}" if known else ""
        sure = f"{100 * found.confidence[at]:.0f}{PERCENT}"
        file = pictures.name(at)
        name = file.rpartition("/")[2]
        image = tag(
            "img",
            src=data_address(pictures.image(at)),
            alt=f"{name}: {f'it {true}; ' if true else ''}the model said {predicted}, {sure} sure",
        )
        said = [f"said {predicted}", "right" if found.right[at] else true]
        words = [
            tag("span", ", ".join(filter(None, said)), class_="wrong" if found.wrong[at] else None),
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
