"""Pictures inside the page: small, in order, and with words for whoever cannot see them."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

from fullmatch.report.gallery import LONG, SIDE, Pictures, data_address, gallery, in_short
from fullmatch.storage.runs import Predictions, read_run
from tests.report.written import ODD, write_run


def decoded(address: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))


def test_pictures_are_shrunk_but_never_blown_up() -> None:
    assert decoded(data_address(Image.new("RGB", (400, 200)))).size == (SIDE, SIDE // 2)
    assert decoded(data_address(Image.new("L", (8, 8)))).size == (8, 8)


def test_pixels_and_kinds_survive() -> None:
    assert decoded(data_address(Image.new("RGB", (5, 5), (1, 2, 3)))).getpixel((0, 0)) == (1, 2, 3)
    assert decoded(data_address(Image.new("L", (5, 5), 7))).getpixel((0, 0)) == 7
    assert decoded(data_address(Image.new("RGBA", (5, 5)))).mode == "RGB"


def test_every_picture_says_what_it_is(tmp_path: Path) -> None:
    found = read_run(write_run(tmp_path / "run", classes=ODD)).predictions
    assert found is not None
    asked: list[int] = []

    def image(at: int) -> Image.Image:
        asked.append(at)
        return Image.new("L", (8, 8))

    markup = gallery(Pictures(image, lambda at: f"test/<b>/<{at}>.png", found), [11, 0], ODD)
    assert asked == [11, 0] and markup.count("<img") == 2
    assert "<script>" not in markup and "&lt;11&gt;.png" in markup
    assert 'alt="&lt;11&gt;.png: it is ähre 麦; the model said &lt;script&gt;' in markup
    assert 'title="test/&lt;b&gt;/&lt;11&gt;.png">&lt;11&gt;.png</span>' in markup
    assert markup.count('class="wrong"') == 1 and "99\u00a0% sure" in markup


def test_what_nobody_knows_is_not_called_wrong() -> None:
    found = Predictions(np.array([[0.3, 0.7]]), np.array([-1]))
    pictures = Pictures(lambda at: Image.new("L", (8, 8)), lambda at: "unlabeled/1.png", found)
    markup = gallery(pictures, [0], ["cat", "dog"])
    assert 'alt="1.png: the model said dog, 70\u00a0% sure"' in markup
    assert "<span>said dog</span>" in markup and "wrong" not in markup


def test_long_names_keep_their_ends() -> None:
    assert in_short("number 12") == "number 12" and in_short("x" * LONG) == "x" * LONG
    short = in_short("scan_from_the_second_box_0802.png")
    assert short == "scan_fr…box_0802.png" and len(short) == LONG
