"""Small pictures for the map of a report, many to a JPEG file."""

import io

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from fullmatch.data import ImageStore, Source
from fullmatch.data.stores.pictures import to_image
from fullmatch.errors import UserError
from fullmatch.storage.features import Part
from fullmatch.storage.picture_map import PictureMap, Thumbnails

MOST = 6000  # thumbnails, so that a page stays below about 12 MB
FEW = 2500  # up to which they may be larger
LARGE, SMALL = 64, 48  # pixels of the longer side
COLUMNS = 16
PER_SHEET = 256
QUALITY = 75  # of the JPEG files
BLOCK = 16  # pixels: JPEG compresses blocks of this size, so that tiles do not blend

Rows = NDArray[np.int64]


def make_thumbnails(picture_map: PictureMap, source: Source, most: int = MOST) -> Thumbnails:
    """Thumbnails of up to `most` pictures; `UserError` if they are not those of the map."""
    check_same_pictures(picture_map, source)
    rows = picture_map.choose_rows(most)
    if not len(rows):
        return Thumbnails()
    size = tile_size(source.images.shape, len(rows))
    sheets = [
        encode_sheet(read_tiles(source, rows[start : start + PER_SHEET], size))
        for start in range(0, len(rows), PER_SHEET)
    ]
    height, width = size
    cell = (width + -width % BLOCK, height + -height % BLOCK)
    return Thumbnails(
        tuple(sheets),
        rows,
        (width, height),
        cell,
        COLUMNS,
        PER_SHEET,
        open_picture=lambda row: open_row(source, row),
    )


def check_same_pictures(picture_map: PictureMap, source: Source) -> None:
    """By number and file name; where the files are may have changed."""
    test = picture_map.parts == Part.TEST
    stores = [source.images] + ([source.test] if test.any() and source.test is not None else [])
    counts = [int((~test).sum()), *([int(test.sum())] if test.any() else [])]
    names = [path.rpartition("/")[2] for store in stores for path in store.paths]
    mapped = [name.rpartition("/")[2] for name in picture_map.names]
    if [len(store) for store in stores] != counts or (names and names != mapped):
        raise UserError("they have changed since this run")


def open_row(source: Source, row: int) -> Image.Image:
    """One picture, given as a row of the map."""
    test = source.test if row >= len(source.images) else None
    store, at = (source.images, row) if test is None else (test, row - len(source.images))
    return to_image(store.read(torch.tensor([at]))[0].cpu().numpy())


def tile_size(shape: tuple[int, int, int], count: int) -> tuple[int, int]:
    """Height and width; nothing is enlarged."""
    _, height, width = shape
    scale = min(1.0, (LARGE if count <= FEW else SMALL) / max(height, width))
    return max(1, round(scale * height)), max(1, round(scale * width))


def read_tiles(source: Source, rows: Rows, size: tuple[int, int]) -> Tensor:
    """(B, C, height, width) bytes of pictures, given as rows of the map."""
    index = torch.from_numpy(rows)
    in_test = index >= len(source.images)
    parts: list[tuple[ImageStore | None, Tensor]] = [
        (source.images, index[~in_test]),
        (source.test, index[in_test] - len(source.images)),
    ]
    images = [store.read(at).cpu() for store, at in parts if store is not None and len(at)]
    shrunk = [
        functional.interpolate(each.float(), size, mode="bilinear", antialias=True)
        for each in images
    ]
    return torch.cat(shrunk).round().clamp(0, 255).byte()


def encode_sheet(tiles: Tensor) -> bytes:
    """One JPEG file of tiles (B, C, h, w), padded to whole blocks."""
    _, channels, height, width = tiles.shape
    padding = (0, -width % BLOCK, 0, -height % BLOCK)
    tiles = functional.pad(tiles.float(), padding, mode="replicate").byte()
    height, width = tiles.shape[2:]
    sheet = np.full((-(-len(tiles) // COLUMNS) * height, COLUMNS * width, channels), 128, np.uint8)
    for number, tile in enumerate(tiles.permute(0, 2, 3, 1).numpy()):
        top, left = number // COLUMNS * height, number % COLUMNS * width
        sheet[top : top + height, left : left + width] = tile
    buffer = io.BytesIO()
    image = Image.fromarray(sheet[..., 0] if channels == 1 else sheet)
    image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return buffer.getvalue()
