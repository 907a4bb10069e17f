"""The map of the pictures: every picture as a point, with its thumbnail, in one canvas.

The page holds the data as JSON, with arrays as base64; `map.js` draws it.
"""

import base64
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fullmatch.pages.frame import Section, load_template, resource
from fullmatch.pages.markup import Markup
from fullmatch.pages.palette import SERIES
from fullmatch.storage.features import Part
from fullmatch.storage.picture_map import PictureMap, Thumbnails

PACKAGE = "fullmatch.reports"
MOST_POINTS = 50_000  # that a page can hold and a browser draws quickly
UNSURE = 0.7  # confidence below which a prediction is called unsure
COLORS = SERIES[:-1]  # the last one is gray, as pictures without a label are
SHAPES = 6  # that map.js can draw
NO_TILE = 0xFFFF
CONFIDENCE_UNIT = 10_000  # confidences are sent as integers

Numbers = NDArray[Any]


@dataclass(frozen=True)
class MarkerGroup:
    """Classes that are drawn alike: one, or all that have no marker of their own."""

    name: str
    color: str  # role in the palette
    shape: int
    pale: bool = False


def make_map_section(picture_map: PictureMap, thumbnails: Thumbnails) -> Section:
    """The section of a report; it brings its own script and style."""
    style, script = resource("map.css", PACKAGE), resource("map.js", PACKAGE)
    return Section("map", "Map of the pictures", render_map(picture_map, thumbnails), script, style)


def render_map(
    picture_map: PictureMap, thumbnails: Thumbnails, most_points: int = MOST_POINTS
) -> Markup:
    """The map as HTML; of very many pictures, a part."""
    if not len(picture_map):
        return Markup("")
    total = len(picture_map)
    tiles = number_tiles(total, thumbnails)
    if total > most_points:
        rows = picture_map.choose_rows(most_points)
        picture_map, tiles = picture_map.take(rows), tiles[rows]
    labeled = int((picture_map.parts == Part.LABELED).sum())
    outlined = 0 < labeled <= len(picture_map) / 4  # more would be a map of outlines
    data = pack_map(picture_map, outlined) | pack_thumbnails(tiles, thumbnails)
    text = load_template(PACKAGE, "map.html.j2").render(
        count=len(picture_map),
        total=total,
        data=Markup(to_script_json(data)),
        filters=count_filters(picture_map),
        parts=count_parts(picture_map),
        any_label=bool((picture_map.labels >= 0).any()),
        outlined=outlined,
        thumbnails=int((tiles != NO_TILE).sum()),
        missing=thumbnails.missing,
    )
    return Markup(text)


def number_tiles(total: int, thumbnails: Thumbnails) -> Numbers:
    """(total,) the tile of each picture."""
    tiles = np.full(total, NO_TILE)
    tiles[thumbnails.rows] = np.arange(len(thumbnails.rows))
    return tiles


def count_filters(picture_map: PictureMap) -> list[tuple[str, str, int]]:
    """Key, name and number of pictures of every filter."""
    unsure = to_units(picture_map.confidence) < UNSURE * CONFIDENCE_UNIT
    counts = [unsure.sum(), picture_map.wrong.sum()]
    counts += [picture_map.outlier.sum(), picture_map.suspect.sum()]
    names = {
        "unsure": f"unsure (below {100 * UNSURE:.0f} % confidence)",
        "wrong": "wrong predictions",
        "outlier": "outliers",
        "suspect": "labels that look wrong",
    }
    return [(*name, int(n)) for name, n in zip(names.items(), counts, strict=True)]


def count_parts(picture_map: PictureMap) -> list[tuple[int, str, int]]:
    """Value, name and number of pictures of every part that has some."""
    counts = np.bincount(picture_map.parts, minlength=len(Part))
    return [(part, part.name.lower(), int(counts[part])) for part in Part if counts[part]]


def pack_map(picture_map: PictureMap, outlined: bool) -> dict[str, Any]:
    """The pictures as map.js reads them; numbers are as small as the screen allows."""
    groups, group_of_class = group_classes(picture_map)
    return {
        "names": picture_map.names,
        "classes": picture_map.classes,
        "groups": [asdict(group) for group in groups],
        "groupOfClass": group_of_class,
        "points": encode((picture_map.points + 1) / 2 * 0xFFFF, "<u2"),
        "labels": encode(picture_map.labels, "<i2"),
        "predicted": encode(picture_map.predicted, "<i2"),
        "confidence": encode(to_units(picture_map.confidence), "<u2"),
        "parts": encode(picture_map.parts, "u1"),
        "outlier": encode(picture_map.outlier, "u1"),
        "suspect": encode(picture_map.suspect, "u1"),
        "unsure": UNSURE * CONFIDENCE_UNIT,
        "confidenceUnit": CONFIDENCE_UNIT,
        "outlinedPart": int(Part.LABELED) if outlined else None,
    }


def pack_thumbnails(tiles: Numbers, thumbnails: Thumbnails) -> dict[str, Any]:
    return {
        "tiles": encode(tiles, "<u2"),
        "sheets": [base64.b64encode(sheet).decode() for sheet in thumbnails.sheets],
        "tile": thumbnails.tile,
        "cell": thumbnails.cell,
        "columns": thumbnails.columns,
        "perSheet": thumbnails.per_sheet,
    }


def group_classes(picture_map: PictureMap) -> tuple[list[MarkerGroup], list[int]]:
    """Markers for the classes, and the marker of each class.

    Where there are more classes than markers, the smaller classes share one.
    """
    classes, most = picture_map.classes, len(COLORS) * SHAPES
    if len(classes) <= most:
        own = list(range(len(classes)))
    else:
        known = picture_map.labels[picture_map.labels >= 0]
        sizes = np.bincount(np.concatenate([picture_map.predicted, known]), minlength=len(classes))
        own = sorted(np.argsort(-sizes, kind="stable")[:most].tolist())
    groups = [
        MarkerGroup(classes[code], color, shape)
        for code, (color, shape) in zip(own, assign_markers(picture_map, own), strict=True)
    ]
    if len(own) < len(classes):
        name = f"{len(classes) - len(own):,} other classes"
        groups.append(MarkerGroup(name, SERIES[-1], 0, pale=True))
    places = {code: at for at, code in enumerate(own)}
    return groups, [places.get(code, len(own)) for code in range(len(classes))]


def assign_markers(picture_map: PictureMap, codes: list[int]) -> list[tuple[str, int]]:
    """Color and shape of some classes; classes of one color are far apart on the map."""
    capacity = -(-len(codes) // len(COLORS))
    centers_by_color: list[list[Numbers]] = [[] for _ in COLORS]
    markers = []
    for code in codes:
        members = picture_map.points[picture_map.predicted == code]
        center = np.median(members, axis=0) if len(members) else np.zeros(2)
        free = [at for at, centers in enumerate(centers_by_color) if len(centers) < capacity]
        color = max(free, key=lambda at: distance_to_nearest(center, centers_by_color[at]))
        markers.append((COLORS[color], len(centers_by_color[color])))
        centers_by_color[color].append(center)
    return markers


def distance_to_nearest(center: Numbers, centers: list[Numbers]) -> float:
    return min((float(np.linalg.norm(center - other)) for other in centers), default=np.inf)


def to_units(confidence: Numbers) -> Numbers:
    return np.round(confidence.astype(np.float64) * CONFIDENCE_UNIT).astype(np.int64)


def encode(values: Numbers, kind: str) -> str:
    """Base64 of little-endian numbers, as JavaScript's typed arrays hold them."""
    rounded = np.round(values) if np.issubdtype(values.dtype, np.floating) else values
    return base64.b64encode(rounded.astype(kind).tobytes()).decode()


def to_script_json(value: object) -> str:
    """JSON that may stand inside a script element: it cannot end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
