"""The map in a real browser: hovering, keys, filters, zooming, themes, and many points."""

import colorsys
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from fullmatch.inference.map_thumbnails import make_thumbnails
from fullmatch.pages.frame import render_page, write_page
from fullmatch.pages.palette import DARK, LIGHT
from fullmatch.reports.map import make_map_section
from fullmatch.reports.page import render_report
from fullmatch.storage.features import Part
from fullmatch.storage.picture_map import PictureMap, Thumbnails, write_map
from fullmatch.storage.runs import read_run
from tests.browser import browser, prefer, resize, visit
from tests.inference.test_map_thumbnails import make_source
from tests.picture_maps import make_map
from tests.written_runs import ODD, write_run

MARGIN, BUTTONS, STRETCH = 24, 24, 1.4  # as in map.js
COUNT = 90
# Five pictures in a cross; the first is in the middle, the others are right, left, below, above.
CROSS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser() as chrome:
        yield chrome


def picture_color(number: int) -> tuple[int, ...]:
    """A color of its own for every picture."""
    red, green, blue = colorsys.hsv_to_rgb(number / 10 % 1, 1, 0.9)
    return round(255 * red), round(255 * green), round(255 * blue)


def color_pictures(count: int) -> torch.Tensor:
    pixels = [Image.new("RGB", (16, 16), picture_color(number)) for number in range(count)]
    return torch.from_numpy(np.stack([np.asarray(each) for each in pixels]).transpose(0, 3, 1, 2))


def cross_map() -> PictureMap:
    """Cat, dog, fox, cat without a label, and a dog that is predicted as a fox."""
    return replace(
        make_map(5),
        points=CROSS,
        labels=np.array([0, 1, 2, -1, 1]),
        predicted=np.array([0, 1, 2, 0, 2]),
        confidence=np.array([0.99, 0.95, 0.8, 0.6, 0.3], np.float32),
        parts=np.full(5, Part.UNLABELED, np.uint8),
        outlier=np.array([False, False, True, False, False]),
        suspect=np.array([False, False, False, False, True]),
        names=tuple(f"pictures/{name}.png" for name in ("middle", "right", "left", "low", "top")),
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("maps")
    run = write_run(place / "run")
    write_map(run / "map.safetensors", make_map(COUNT))
    thumbnails = make_thumbnails(make_map(COUNT), make_source(color_pictures(COUNT), COUNT // 6))
    pages = {"report": place / "report.html"}
    write_page(pages["report"], render_report(read_run(run), None, "", thumbnails))
    cross = cross_map()
    odd = replace(
        make_map(60, classes=(*ODD, "a class with quite a long name " * 3)),
        names=tuple(f"<img src=x onerror=alert({n})>/{'long' * 30}.png" for n in range(60)),
    )
    for name, picture_map, pictures in (
        ("cross", cross, make_thumbnails(cross, make_source(color_pictures(5)))),
        ("odd", odd, Thumbnails()),
        ("small", make_map(1000), Thumbnails()),
        ("large", make_map(20_000), Thumbnails()),
    ):
        pages[name] = place / f"{name}.html"
        section = make_map_section(picture_map, pictures)
        write_page(pages[name], render_page("Map", "", [section]))
    return pages


def open_map(
    driver: Chrome, path: Path, *, width: int = 1100, height: int = 1500, scheme: str = "light"
) -> WebElement:
    prefer(driver, scheme)
    resize(driver, width, height)
    visit(driver, "about:blank")
    driver.get_log("browser")
    visit(driver, path.as_uri())
    driver.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    canvas = driver.find_element(By.ID, "map-canvas")
    WebDriverWait(driver, 10, 0.02).until(lambda d: drawn(d) > 0)
    return canvas


def drawn(driver: Chrome) -> int:
    """Points in the last picture, after it was drawn."""
    script = """
      const done = arguments[0];
      const count = () => done(Number(document.getElementById("map-canvas").dataset.drawn || 0));
      requestAnimationFrame(() => requestAnimationFrame(count));
    """
    return int(driver.execute_async_script(script))


def position(driver: Chrome, point: np.ndarray) -> tuple[int, int]:
    """Where a point is drawn, from the middle of the canvas, as `move_to_element_with_offset`."""
    script = """
      const { clientWidth, clientHeight } = document.getElementById("map-canvas");
      return [clientWidth, clientHeight];
    """
    width, height = driver.execute_script(script)
    room = width - 2 * MARGIN, height - 2 * MARGIN - BUTTONS
    lengths = [min(length, STRETCH * min(room)) for length in room]
    x, y = (round(float(p) * length / 2) for p, length in zip(point, lengths, strict=True))
    return x, y + BUTTONS // 2


def hover(driver: Chrome, canvas: WebElement, point: np.ndarray) -> None:
    ActionChains(driver).move_to_element_with_offset(canvas, *position(driver, point)).perform()
    drawn(driver)


def click(driver: Chrome, canvas: WebElement, point: np.ndarray) -> None:
    place = position(driver, point)
    ActionChains(driver).move_to_element_with_offset(canvas, *place).click().perform()
    drawn(driver)


def tip(driver: Chrome) -> str | None:
    """What is shown about a picture; None if nothing is."""
    box = driver.find_element(By.ID, "map-tip")
    return box.text if box.is_displayed() else None


def spoken(driver: Chrome) -> str:
    return str(driver.find_element(By.ID, "map-spoken").get_property("textContent"))


def read_pixel(driver: Chrome, element: str, x: int, y: int) -> list[int]:
    """Red, green and blue of a canvas, at pixels from its middle."""
    script = """
      const canvas = document.getElementById(arguments[0]);
      const [x, y] = [canvas.width / 2 + arguments[1], canvas.height / 2 + arguments[2]];
      return [...canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data]
    """
    return list(driver.execute_script(script, element, x, y))[:3]


def rgb(color: str) -> list[int]:
    return [int(color[at : at + 2], 16) for at in (1, 3, 5)]


def choose(driver: Chrome, element: str, value: str) -> int:
    """Choose an option; returns the number of points drawn."""
    Select(driver.find_element(By.ID, f"map-{element}")).select_by_value(value)
    return drawn(driver)


def tick(driver: Chrome, key: str) -> int:
    driver.find_element(By.CSS_SELECTOR, f".map-controls input[value={key}]").click()
    return drawn(driver)


def legend(driver: Chrome) -> dict[str, int]:
    buttons = driver.find_elements(By.CSS_SELECTOR, "#map-groups button")
    lines = [button.find_elements(By.TAG_NAME, "span") for button in buttons]
    return {name.text: int(number.text.replace(",", "")) for name, number in lines}


def press_group(driver: Chrome, name: str) -> int:
    for button in driver.find_elements(By.CSS_SELECTOR, "#map-groups button"):
        if button.find_element(By.TAG_NAME, "span").text == name:
            button.click()
            break
    return drawn(driver)


def test_in_a_report_without_errors_and_without_a_network(
    driver: Chrome, pages: dict[str, Path]
) -> None:
    driver.get_log("performance")
    open_map(driver, pages["report"])
    assert drawn(driver) == COUNT
    assert driver.get_log("browser") == []  # neither errors nor violations of the policy
    events = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    urls = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in urls if not url.startswith("data:")} <= {
        pages["report"].as_uri(),
        "about:blank",
    }
    assert driver.find_element(By.ID, "map-count").text == f"{COUNT} of {COUNT} pictures"
    assert driver.find_element(By.CSS_SELECTOR, "nav a[href='#map']").text == "Map of the pictures"


def wait_for_thumbnail(driver: Chrome, color: tuple[int, ...]) -> None:
    """Until the thumbnail has this color; it is decoded when it is first needed."""

    def shows_color(driver: Chrome) -> bool:
        differences = np.subtract(read_pixel(driver, "map-thumbnail", 0, 0), color)
        return bool(np.abs(differences).max() < 20)

    WebDriverWait(driver, 10, 0.02).until(shows_color)


def test_hovering_shows_the_thumbnail_and_the_name(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    assert tip(driver) is None
    for number, point in enumerate(CROSS):
        hover(driver, canvas, point)
        wait_for_thumbnail(driver, picture_color(number))
        assert cross_map().names[number] in (tip(driver) or "")
    hover(driver, canvas, np.array([0.5, 0.5]))
    assert tip(driver) is None  # nothing is near


def test_what_is_said_about_a_picture(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    hover(driver, canvas, CROSS[0])
    assert tip(driver) == "predicted cat\n99 % confident\nlabel cat\npictures/middle.png"
    hover(driver, canvas, CROSS[2])
    assert tip(driver) == "predicted fox\n80 % confident\nlabel fox\noutlier\npictures/left.png"
    hover(driver, canvas, CROSS[3])
    assert tip(driver) == "predicted cat\n60 % confident\nno label\npictures/low.png"
    hover(driver, canvas, CROSS[4])
    lines = "predicted fox\n30 % confident\nlabel dog\nthe label looks wrong\npictures/top.png"
    assert tip(driver) == lines
    odd = [line.text for line in driver.find_elements(By.CSS_SELECTOR, "#map-lines .odd")]
    assert odd == ["predicted fox", "the label looks wrong"]
    ActionChains(driver).move_to_element(driver.find_element(By.TAG_NAME, "h1")).perform()
    drawn(driver)
    assert tip(driver) is None
    assert spoken(driver) == ""


def test_the_tip_is_inside_of_the_map_and_beside_the_point(
    driver: Chrome, pages: dict[str, Path]
) -> None:
    script = """
      const [tip, map] = ["map-tip", "map-canvas"].map(id => document.getElementById(id));
      const [inner, outer] = [tip.getBoundingClientRect(), map.getBoundingClientRect()];
      const x = outer.left + outer.width / 2 + arguments[0];
      const y = outer.top + outer.height / 2 + arguments[1];
      const inside = inner.left >= outer.left && inner.right <= outer.right
        && inner.top >= outer.top && inner.bottom <= outer.bottom;
      return [inside, x < inner.left || x > inner.right || y < inner.top || y > inner.bottom]
    """
    for width in (320, 1100):
        canvas = open_map(driver, pages["cross"], width=width)
        for point in CROSS:
            hover(driver, canvas, point)
            assert tip(driver) is not None
            x, y = position(driver, point)
            assert driver.execute_script(script, x, y) == [True, True], (width, point)


def test_a_click_keeps_the_picture_open(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    click(driver, canvas, CROSS[1])
    hover(driver, canvas, np.array([0.5, 0.5]))
    assert "right.png" in (tip(driver) or "")
    assert "right.png" in spoken(driver)
    hover(driver, canvas, CROSS[2])
    assert "left.png" in (tip(driver) or "")
    hover(driver, canvas, np.array([0.5, 0.5]))
    assert "right.png" in (tip(driver) or "")
    click(driver, canvas, np.array([0.5, 0.5]))
    assert tip(driver) is None


def test_keyboard(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"], height=700)
    driver.find_element(By.ID, "map-part").send_keys(Keys.TAB * 5)
    assert driver.switch_to.active_element == canvas
    before = driver.execute_script("return scrollY")
    steps = [
        (Keys.ARROW_DOWN, "middle"),  # the first key chooses the picture in the middle
        (Keys.ARROW_RIGHT, "right"),
        (Keys.ARROW_LEFT, "middle"),
        (Keys.ARROW_LEFT, "left"),
        (Keys.ARROW_RIGHT, "middle"),
        (Keys.ARROW_UP, "top"),
        (Keys.ARROW_DOWN, "middle"),
        (Keys.ARROW_DOWN, "low"),
    ]
    for key, name in steps:
        canvas.send_keys(key)
        drawn(driver)
        assert f"pictures/{name}.png" in spoken(driver)
        assert name in (tip(driver) or "")
    assert spoken(driver) == "pictures/low.png, no label, predicted cat, 60 % confident"
    canvas.send_keys(Keys.ARROW_DOWN)
    assert spoken(driver) == "no picture in this direction"
    assert "low" in (tip(driver) or "")
    assert driver.execute_script("return scrollY") == before  # arrows do not scroll the page
    canvas.send_keys(Keys.ESCAPE)
    drawn(driver)
    assert tip(driver) is None
    assert spoken(driver) == ""
    assert driver.switch_to.active_element != canvas


def test_arrows_reach_every_point_of_a_row(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["report"])
    canvas.send_keys(Keys.ARROW_RIGHT)
    names = [spoken(driver).split(",")[0]]
    for _ in range(60):
        canvas.send_keys(Keys.ARROW_RIGHT)
        if spoken(driver).startswith("no picture"):
            break
        names.append(spoken(driver).split(",")[0])
    else:
        pytest.fail("the arrow never came to the right end")
    picture_map = make_map(COUNT)
    rows = [picture_map.names.index(name) for name in names]
    steps = np.diff([position(driver, picture_map.points[row]) for row in rows], axis=0)
    assert len(steps) > 3
    assert (steps[:, 0] + 2 >= np.abs(steps[:, 1])).all()  # rather right than up or down


def test_keys_zoom_and_keep_the_picture_in_view(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    canvas.send_keys(Keys.ARROW_RIGHT)
    canvas.send_keys(Keys.ARROW_RIGHT)
    canvas.send_keys("+++")
    assert drawn(driver) == 1  # the others are out of view
    assert "right" in (tip(driver) or "")  # it is zoomed around the picture that is open
    canvas.send_keys(Keys.ARROW_LEFT)
    canvas.send_keys(Keys.ARROW_UP)
    assert drawn(driver) == 1
    assert "top" in (tip(driver) or "")
    canvas.send_keys(Keys.ESCAPE)
    click(driver, canvas, CROSS[0])
    assert "top" in spoken(driver)  # the view followed: it is in the middle
    canvas.send_keys("-")
    canvas.send_keys("0")
    assert drawn(driver) == 5


def test_filters(driver: Chrome, pages: dict[str, Path]) -> None:
    open_map(driver, pages["report"])
    picture_map = make_map(COUNT)
    masks = {
        "unsure": picture_map.confidence < 0.7,
        "wrong": picture_map.wrong,
        "outlier": picture_map.outlier,
        "suspect": picture_map.suspect,
    }
    for key, mask in masks.items():
        assert 0 < mask.sum() < COUNT
        assert tick(driver, key) == mask.sum(), key
        assert tick(driver, key) == COUNT
    tick(driver, "unsure")
    both = masks["unsure"] | masks["outlier"]
    assert tick(driver, "outlier") == both.sum()
    assert driver.find_element(By.ID, "map-count").text == f"{both.sum()} of {COUNT} pictures"
    test = picture_map.parts == Part.TEST
    assert choose(driver, "part", str(int(Part.TEST))) == (both & test).sum()
    tick(driver, "unsure")
    tick(driver, "outlier")
    assert drawn(driver) == test.sum()
    assert choose(driver, "part", "") == COUNT


def test_the_legend_counts_and_hides(driver: Chrome, pages: dict[str, Path]) -> None:
    open_map(driver, pages["report"])
    picture_map = make_map(COUNT)
    predicted = np.bincount(picture_map.predicted, minlength=3).tolist()
    assert legend(driver) == dict(zip(picture_map.classes, predicted, strict=True))
    assert press_group(driver, "dog") == COUNT - predicted[1]
    pressed = driver.switch_to.active_element  # the focus stays, for the keyboard
    assert pressed.get_dom_attribute("aria-pressed") == "false"
    assert "dog" in pressed.text
    pressed.send_keys(Keys.ENTER)
    assert drawn(driver) == COUNT
    driver.find_element(By.ID, "map-none").click()
    assert drawn(driver) == 0
    assert press_group(driver, "fox") == predicted[2]
    driver.find_element(By.ID, "map-all").click()
    assert drawn(driver) == COUNT
    choose(driver, "coloring", "label")
    labels = picture_map.labels
    known = np.bincount(labels[labels >= 0], minlength=3).tolist()
    expected = dict(zip(picture_map.classes, known, strict=True))
    assert legend(driver) == expected | {"no label": int((labels < 0).sum())}
    assert press_group(driver, "no label") == sum(known)
    choose(driver, "coloring", "confidence")
    percents = np.round(picture_map.confidence.astype(float) * 10_000) / 100
    counts = np.histogram(percents, [0, 50, 70, 90, 99, 100.1])[0].tolist()
    names = ["below 50 %", "50 to 70 %", "70 to 90 %", "90 to 99 %", "99 to 100 %"]
    assert legend(driver) == dict(zip(names, counts, strict=True))
    tick(driver, "outlier")
    assert sum(legend(driver).values()) == picture_map.outlier.sum()  # counts follow filters


def test_hidden_points_are_not_found(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    click(driver, canvas, CROSS[1])
    press_group(driver, "dog")
    assert tip(driver) is None  # it was open, and is hidden now
    hover(driver, canvas, CROSS[1])
    assert tip(driver) is None
    canvas.send_keys(Keys.ARROW_RIGHT)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert "right" not in spoken(driver)


def wheel(driver: Chrome, canvas: WebElement, delta: int) -> int:
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    origin = ScrollOrigin.from_element(canvas)
    ActionChains(driver).scroll_from_origin(origin, 0, delta).perform()
    return drawn(driver)


def test_the_wheel_scrolls_the_page_until_the_map_is_clicked(
    driver: Chrome, pages: dict[str, Path]
) -> None:
    canvas = open_map(driver, pages["report"], height=800)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    before = driver.execute_script("return scrollY")
    assert wheel(driver, canvas, -120) == COUNT
    WebDriverWait(driver, 10, 0.02).until(
        lambda d: d.execute_script("return scrollY") == before - 120
    )
    ActionChains(driver).click(canvas).perform()
    before = driver.execute_script("return scrollY")
    assert wheel(driver, canvas, -600) < COUNT
    assert driver.execute_script("return scrollY") == before
    assert wheel(driver, canvas, 600) == COUNT
    wheel(driver, canvas, 120)  # it cannot get smaller, so the page scrolls on
    WebDriverWait(driver, 10, 0.02).until(lambda d: d.execute_script("return scrollY") > before)


def test_a_picture_out_of_view_is_not_described(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    click(driver, canvas, CROSS[1])
    driver.find_element(By.ID, "map-in").click()
    assert "right" in (tip(driver) or "")
    drag = ActionChains(driver).move_to_element(canvas).click_and_hold()
    drag.move_by_offset(200, 0).release().perform()
    drawn(driver)
    assert tip(driver) is None
    driver.find_element(By.ID, "map-reset").click()
    drawn(driver)
    assert "right" in (tip(driver) or "")


def test_resizing_never_shows_an_empty_map(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    script = """
      const [canvas, done] = arguments;
      const empty = () => !canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
      new ResizeObserver(() => done(empty())).observe(canvas.parentElement.appendChild(
        Object.assign(document.createElement("p"), { textContent: "later" })));
      canvas.style.height = "300px";
    """
    assert driver.execute_async_script(script, canvas) is False


def test_zoom_buttons_and_dragging(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    for _ in range(4):
        driver.find_element(By.ID, "map-in").click()
    assert drawn(driver) == 1
    hover(driver, canvas, CROSS[0])
    assert "middle" in (tip(driver) or "")
    x, y = position(driver, CROSS[0])
    drag = ActionChains(driver).move_to_element_with_offset(canvas, x, y).click_and_hold()
    drag.move_by_offset(60, 40).release().perform()
    drawn(driver)
    ActionChains(driver).move_to_element_with_offset(canvas, x + 60, y + 40).perform()
    drawn(driver)
    assert "middle" in (tip(driver) or "")  # it moved with the pointer
    assert spoken(driver) == ""  # a drag is not a click
    driver.find_element(By.ID, "map-out").click()
    driver.find_element(By.ID, "map-reset").click()
    assert drawn(driver) == 5
    hover(driver, canvas, CROSS[1])
    assert "right" in (tip(driver) or "")


def touch(driver: Chrome, kind: str, *points: tuple[float, float]) -> None:
    contacts = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": contacts})


def test_fingers(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"], width=375, height=800)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        script = """
          const { left, top, width, height } = arguments[0].getBoundingClientRect();
          return [left + width / 2, top + height / 2]
        """
        left, top = driver.execute_script(script, canvas)
        dx, dy = position(driver, CROSS[2])
        touch(driver, "touchStart", (left + dx, top + dy))
        touch(driver, "touchEnd")
        drawn(driver)
        assert "left.png" in (tip(driver) or "")
        touch(driver, "touchStart", (left + dx, top - dx))
        touch(driver, "touchEnd")
        drawn(driver)
        assert tip(driver) is None
        middle = top + BUTTONS / 2
        touch(driver, "touchStart", (left, middle - 20))
        touch(driver, "touchStart", (left, middle - 20), (left, middle + 20))
        for distance in (30, 60, 90, 120):
            touch(driver, "touchMove", (left, middle - distance), (left, middle + distance))
        touch(driver, "touchEnd")
        assert drawn(driver) == 1  # zoomed in by both fingers
        assert canvas.value_of_css_property("touch-action") == "none"
    finally:
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_points_have_the_colors_of_the_theme(driver: Chrome, pages: dict[str, Path]) -> None:
    for scheme, palette in (("light", LIGHT), ("dark", DARK)):
        open_map(driver, pages["cross"], scheme=scheme)
        place = position(driver, CROSS[0])
        assert read_pixel(driver, "map-canvas", *place) == rgb(palette["one"])
    driver.find_element(By.ID, "theme").click()
    drawn(driver)
    assert read_pixel(driver, "map-canvas", *place) == rgb(LIGHT["one"])
    driver.execute_script("localStorage.clear()")
    choose(driver, "coloring", "confidence")
    low, high = position(driver, CROSS[4]), position(driver, CROSS[0])
    assert read_pixel(driver, "map-canvas", *low) == rgb(LIGHT["two"])
    assert read_pixel(driver, "map-canvas", *high) == rgb(LIGHT["one"])


def test_sharp_on_fine_screens(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["cross"])
    widths = driver.execute_script("return [arguments[0].width, arguments[0].clientWidth]", canvas)
    assert widths[0] == widths[1]
    metrics: dict[str, Any] = {"width": 900, "height": 1500, "deviceScaleFactor": 2}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics | {"mobile": False})
    script = "return arguments[0].width === 2 * arguments[0].clientWidth"
    WebDriverWait(driver, 10, 0.02).until(lambda d: d.execute_script(script, canvas))
    hover(driver, canvas, CROSS[1])
    assert "right" in (tip(driver) or "")
    x, y = position(driver, CROSS[0])
    assert read_pixel(driver, "map-canvas", 2 * x, 2 * y) == rgb(LIGHT["one"])


@pytest.mark.parametrize("width", [320, 375, 768])
@pytest.mark.parametrize("name", ["report", "odd"])
def test_narrow_screens_do_not_scroll_sideways(
    driver: Chrome, pages: dict[str, Path], name: str, width: int
) -> None:
    canvas = open_map(driver, pages[name], width=width)
    canvas.send_keys(Keys.ARROW_RIGHT)
    drawn(driver)
    assert tip(driver) is not None
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_names_are_shown_and_never_run(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["odd"])
    canvas.send_keys(Keys.ARROW_RIGHT)
    drawn(driver)
    assert "<img src=x onerror=alert(" in (tip(driver) or "")
    assert ODD[0] in legend(driver)
    assert not driver.find_elements(By.CSS_SELECTOR, "#map img")
    assert driver.get_log("browser") == []


def test_screen_readers_get_names_for_everything(driver: Chrome, pages: dict[str, Path]) -> None:
    open_map(driver, pages["report"])
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and "role" in node
    ]
    assert ("application", f"Map of {COUNT} pictures") in named
    assert ("group", "Only") in named
    roles = {role for role, _ in named}
    assert {"application", "checkbox", "combobox", "status"} <= roles
    for role in ("button", "checkbox", "combobox", "application"):
        assert all(name for each, name in named if each == role), role


def measure(driver: Chrome, path: Path) -> tuple[float, float]:
    """Milliseconds to show all points anew, and to draw another part of the map."""
    open_map(driver, path)
    script = """
      const canvas = document.getElementById("map-canvas");
      const context = canvas.getContext("2d");
      window.requestAnimationFrame = (callback) => { callback(0); return 0; };
      const time = (action) => {
        const start = performance.now();
        for (let turn = 0; turn < 5; turn++) {
          action();
          context.getImageData(0, 0, 1, 1); // waits until it is drawn
        }
        return (performance.now() - start) / 5;
      };
      const controls = document.querySelector(".map-controls");
      return [
        time(() => controls.dispatchEvent(new Event("change"))),
        time(() => document.getElementById("map-reset").click()),
      ]
    """
    refresh, draw = driver.execute_script(script)
    return refresh, draw


def test_many_points_draw_in_time(driver: Chrome, pages: dict[str, Path]) -> None:
    """Twenty times the points take at most forty times as long."""
    small, large = (measure(driver, pages[name]) for name in ("small", "large"))
    assert drawn(driver) == 20_000
    for few, many in zip(small, large, strict=True):
        assert many < 40 * max(few, 1.0), (small, large)


def test_the_nearest_of_many_points_is_found(driver: Chrome, pages: dict[str, Path]) -> None:
    canvas = open_map(driver, pages["large"])
    points = make_map(20_000).points
    target = int(points[:, 0].argmax())  # on the edge
    hover(driver, canvas, points[target])
    shown = int(str(driver.find_element(By.ID, "map-tip").get_dom_attribute("data-picture")))
    assert np.linalg.norm(points[shown] - points[target]) < 0.01
