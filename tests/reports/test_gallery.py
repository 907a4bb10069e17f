"""Thumbnails in a page: small, in order, and described for screen readers."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

from fullmatch.reports.gallery import (
    LONGEST_NAME,
    SIDE,
    render_gallery,
    shorten_name,
    to_data_url,
)
from fullmatch.storage.predictions import Album, Predictions
from fullmatch.storage.runs import read_run
from tests.written_runs import ODD, write_run


def decode(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,"))))


def test_pictures_are_shrunk_but_never_enlarged() -> None:
    assert decode(to_data_url(Image.new("RGB", (400, 200)))).size == (SIDE, SIDE // 2)
    assert decode(to_data_url(Image.new("L", (8, 8)))).size == (8, 8)


def test_pixels_and_modes_are_preserved() -> None:
    assert decode(to_data_url(Image.new("RGB", (5, 5), (1, 2, 3)))).getpixel((0, 0)) == (1, 2, 3)
    assert decode(to_data_url(Image.new("L", (5, 5), 7))).getpixel((0, 0)) == 7
    assert decode(to_data_url(Image.new("RGBA", (5, 5)))).mode == "RGB"


def test_captions(tmp_path: Path) -> None:
    predictions = read_run(write_run(tmp_path / "run", classes=ODD)).predictions
    assert predictions is not None
    positions: list[int] = []

    def image(at: int) -> Image.Image:
        positions.append(at)
        return Image.new("L", (8, 8))

    album = Album(image, lambda at: f"test/<b>/<{at}>.png", predictions)
    markup = render_gallery(album, [11, 0], ODD)
    assert positions == [11, 0]
    assert markup.count("<img") == 2
    assert "<script>" not in markup
    assert "&lt;11&gt;.png" in markup
    assert 'alt="&lt;11&gt;.png: predicted &lt;script&gt;alert(1)&lt;/script&gt;, is ähre' in markup
    assert "alert(1)&lt;/script&gt;, correct, 50\u00a0% confident" in markup
    assert 'title="test/&lt;b&gt;/&lt;11&gt;.png">&lt;11&gt;.png</span>' in markup
    assert markup.count('class="wrong"') == 1
    assert "<span>99\u00a0% confident</span>" in markup


def test_unlabeled_pictures_are_neither_right_nor_wrong() -> None:
    predictions = Predictions(np.array([[0.3, 0.7]]), np.array([-1]))
    album = Album(lambda at: Image.new("L", (8, 8)), lambda at: "unlabeled/1.png", predictions)
    markup = render_gallery(album, [0], ["cat", "dog"])
    assert 'alt="1.png: predicted dog, 70\u00a0% confident"' in markup
    assert "<span>predicted dog</span>" in markup
    assert "wrong" not in markup
    assert "correct" not in markup


def test_long_names_keep_their_ends() -> None:
    assert shorten_name("number 12") == "number 12"
    assert shorten_name("x" * LONGEST_NAME) == "x" * LONGEST_NAME
    short = shorten_name("scan_from_the_second_box_0802.png")
    assert short == "scan_fr…box_0802.png"
    assert len(short) == LONGEST_NAME
