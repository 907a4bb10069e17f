"""Suggested pictures as a page, as a CSV, and as tasks for Label Studio."""

import base64
import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from fullmatch.data.sources.csv_cells import neutralize_cell, neutralize_path
from fullmatch.data.stores.pictures import try_read
from fullmatch.inference.suggestion import Opener, Suggestion
from fullmatch.inference.thumbnails import make_thumbnail, open_picture
from fullmatch.pages.frame import Section, render_page
from fullmatch.pages.markup import Markup, tag

SIDE = 192  # pixels of a thumbnail
HEADER = ("path", "label", "guess", "confidence", "reason")


def render_contact_sheet(
    title: str, suggestions: Sequence[Suggestion], *, open_image: Opener = open_picture
) -> str:
    """One page with a thumbnail of every suggested picture."""
    items = (
        render_item(number, suggestion, open_image)
        for number, suggestion in enumerate(suggestions, start=1)
    )
    gallery = tag("ul", *items, class_="gallery")
    has_model = any(suggestion.guess for suggestion in suggestions)
    reason = "the model is unsure of them, and they differ from each other"
    if not has_model:
        reason = "they are typical of many pictures, and differ from each other"
    subtitle = f"Label these first: {reason}."
    return render_page(title, subtitle, [Section("pictures", "Pictures", gallery)])


def render_item(number: int, suggestion: Suggestion, open_image: Opener) -> Markup:
    def read_thumbnail(path: str) -> bytes:
        with open_image(path) as image:
            return make_thumbnail(image, SIDE)

    name = os.path.basename(suggestion.name)
    jpeg = try_read(read_thumbnail, suggestion.name) or b""
    url = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    return tag(
        "li",
        tag("img", src=url, alt=f"{name}: {suggestion.reason}"),
        tag("span", f"{number}. {suggestion.reason}"),
        tag("span", name, class_="name", title=suggestion.name),
    )


def format_csv(suggestions: Sequence[Suggestion], folder: Path | None) -> str:
    """Rows with an empty label to fill in; paths are relative to `folder`, or as they are."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEADER)
    for suggestion in suggestions:
        name = suggestion.name
        path = neutralize_path(name) if folder is None else path_in_csv(name, folder)
        confidence = "" if suggestion.confidence is None else f"{suggestion.confidence:.4f}"
        guess, reason = neutralize_cell(suggestion.guess), neutralize_cell(suggestion.reason)
        writer.writerow([path, "", guess, confidence, reason])
    return buffer.getvalue()


def path_in_csv(path: str, folder: Path) -> str:
    """The path as a CSV in the folder writes it: relative if it is below, else absolute."""
    full, home = os.path.abspath(path), os.path.abspath(folder)
    if os.path.commonpath([full, home]) != home:
        return full
    relative = os.path.relpath(full, home)
    # Outer spaces of a cell are stripped when it is read.
    return neutralize_path(relative) if relative == relative.strip() else f"./{relative}"


def format_label_studio_tasks(suggestions: Sequence[Suggestion], folder: Path, run: str) -> str:
    """Tasks with predictions; Label Studio has to serve the folder as local files."""
    tasks = []
    for suggestion in suggestions:
        relative = os.fsencode(Path(os.path.relpath(suggestion.name, folder)).as_posix())
        choice = {
            "from_name": "label",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": [suggestion.guess]},
        }
        prediction = {"model_version": run, "score": suggestion.confidence, "result": [choice]}
        predictions = [prediction] if suggestion.guess else []
        tasks.append(
            {
                # With the path, fullmatch can read a CSV that Label Studio exports.
                "data": {
                    "image": f"/data/local-files/?d={quote(relative)}",
                    "path": os.path.abspath(suggestion.name),
                },
                "predictions": predictions,
            }
        )
    return json.dumps(tasks, indent=1) + "\n"


def format_label_studio_interface(classes: Sequence[str]) -> str:
    """The labeling interface that these tasks need."""
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <Choices name="label" toName="image">\n{choices}\n  </Choices>\n</View>\n'
    )
