"""Suggested pictures for the eye, for a spreadsheet, and for Label Studio."""

import base64
import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from fullmatch.data.stores.pictures import try_read
from fullmatch.inference.suggestion import Opener, Suggestion
from fullmatch.inference.thumbnails import open_file, preview
from fullmatch.pages.markup import Markup, tag
from fullmatch.report.frame import page

SIDE = 192  # pixels of a picture on the sheet
HEADER = ("path", "label", "guess", "confidence", "reason")


def contact_sheet(
    title: str, suggestions: Sequence[Suggestion], *, opened: Opener = open_file
) -> str:
    """One page with all pictures inside it."""

    def shown(name: str) -> bytes:
        with opened(name) as image:
            return preview(image, SIDE)

    cards = []
    for number, found in enumerate(suggestions, start=1):
        words = [tag("span", f"{number}. {found.reason}")]
        name = os.path.basename(found.name)
        words.append(tag("span", name, class_="name", title=found.name))
        pixels = try_read(shown, found.name) or b""
        address = f"data:image/jpeg;base64,{base64.b64encode(pixels).decode()}"
        image = tag("img", src=address, alt=f"{name}: {found.reason}")
        cards.append(tag("li", image, *words))
    gallery = tag("ul", *cards, class_="gallery")
    subtitle = "The model is unsure of these, and they are of many kinds: label them first."
    return page(title, subtitle, [("pictures", "Pictures", Markup(gallery))])


def table(suggestions: Sequence[Suggestion], folder: Path | None) -> str:
    """Rows with an empty label to fill in; paths are as `fullmatch train` reads them there."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEADER)
    for found in suggestions:
        name = found.name if folder is None else reference(found.name, folder)
        sure = "" if found.confidence is None else f"{found.confidence:.4f}"
        writer.writerow([name, "", found.guess, sure, found.reason])
    return buffer.getvalue()


def reference(path: str, folder: Path) -> str:
    """How a CSV in the folder names a picture: from there if it lies below, else in full."""
    full, home = os.path.abspath(path), os.path.abspath(folder)
    if os.path.commonpath([full, home]) != home:
        return full
    near = os.path.relpath(full, home)
    return near if near == near.strip() else f"./{near}"  # cells lose their outer spaces


def label_studio_tasks(suggestions: Sequence[Suggestion], folder: Path, run: str) -> str:
    """Pre-annotated tasks for Label Studio, which is to serve the folder as local files."""
    tasks = []
    for found in suggestions:
        below = os.fsencode(Path(os.path.relpath(found.name, folder)).as_posix())
        choice = {
            "from_name": "label",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": [found.guess]},
        }
        prediction = {"model_version": run, "score": found.confidence, "result": [choice]}
        tasks.append(
            {
                # With the path, a table that Label Studio exports can be read back here.
                "data": {
                    "image": f"/data/local-files/?d={quote(below)}",
                    "path": os.path.abspath(found.name),
                },
                "predictions": [prediction],
            }
        )
    return json.dumps(tasks, indent=1) + "\n"


def label_studio_interface(classes: Sequence[str]) -> str:
    """The labeling interface that those tasks belong to."""
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <Choices name="label" toName="image">\n{choices}\n  </Choices>\n</View>\n'
    )
