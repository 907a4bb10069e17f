"""The labeling page in a real browser: mouse, keyboard, phone and screen reader."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from fullmatch.labeling.server import LabelServer
from tests.browser import browser, prefer, resize, visit
from tests.labeling.serving import serving
from tests.own_pictures import clean_folder, picture, save

ODD = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabelServer]:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    with serving(home, 4) as server:
        yield server


def open_page(driver: Chrome, server: LabelServer, *, width: int = 1000) -> None:
    prefer(driver, "light")
    resize(driver, width)
    visit(driver, "about:blank")
    driver.get_log("browser")
    visit(driver, server.address)
    wait_for_picture(driver, 0)


def wait_for_picture(driver: Chrome, number: int) -> None:
    """Wait until the page shows this picture and accepts keys."""
    script = "return state !== null && !waiting && state.number === arguments[0]"
    WebDriverWait(driver, 10, 0.02).until(lambda d: d.execute_script(script, number))


def press(driver: Chrome, *keys: str) -> None:
    """Send keys to the focused element."""
    ActionChains(driver).send_keys(*keys).perform()


def focused(driver: Chrome) -> str:
    element = driver.switch_to.active_element
    return element.get_dom_attribute("id") or element.text


def text_of(driver: Chrome, key: str) -> str:
    return driver.find_element(By.ID, key).text


def labels(server: LabelServer) -> list[str]:
    """Labels of the queue's pictures in the table, in order; '' for none."""
    table = server.queue.table.path
    rows: dict[str, str] = {}
    if table.exists():
        with table.open(encoding="utf-8", newline="") as file:
            rows = {str(table.parent / r["path"]): r["label"] for r in csv.DictReader(file)}
    return [rows.get(picture.name, "") for picture in server.queue.pictures]


def test_opens_without_errors_and_shows_the_picture(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    assert text_of(driver, "progress") == "Picture 1 of 4, 0 labeled"
    assert driver.execute_script("return document.images[0].naturalWidth") == 48
    buttons = driver.find_elements(By.CSS_SELECTOR, "#classes button")
    assert [button.text for button in buttons] == ["1 brick", "2 grass", "3 water"]
    assert driver.get_log("browser") == []


def test_mouse(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    classes = driver.find_elements(By.CSS_SELECTOR, "#classes button")
    undo, skip = driver.find_element(By.ID, "undo"), driver.find_element(By.ID, "skip")
    assert not undo.is_enabled()
    classes[1].click()
    wait_for_picture(driver, 1)
    assert labels(server) == ["grass", "", "", ""]
    skip.click()
    wait_for_picture(driver, 2)
    classes[0].click()
    wait_for_picture(driver, 3)
    assert labels(server) == ["grass", "", "brick", ""]
    undo.click()
    wait_for_picture(driver, 2)
    assert labels(server) == ["grass", "", "", ""]
    assert text_of(driver, "status").startswith("Undone. Picture 3 of 4")
    assert driver.get_log("browser") == []


def test_keyboard_to_the_end_and_back(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    for number, key in enumerate(["3", "s", "1", "2"], start=1):
        press(driver, key)
        wait_for_picture(driver, number)
    assert labels(server) == ["water", "", "brick", "grass"]
    assert text_of(driver, "question") == "Done"
    assert focused(driver) == "question"
    assert str(server.queue.table.path) in text_of(driver, "done")
    assert not driver.find_element(By.ID, "figure").is_displayed()
    press(driver, "1")  # nothing is left to label
    press(driver, "u")
    wait_for_picture(driver, 3)
    assert labels(server) == ["water", "", "brick", ""]
    assert driver.find_element(By.ID, "figure").is_displayed()
    for key in ("9", "x", Keys.ARROW_DOWN):  # no class has these
        press(driver, key)
    ActionChains(driver).key_down(Keys.CONTROL).send_keys("1").key_up(Keys.CONTROL).perform()
    wait_for_picture(driver, 3)
    assert driver.get_log("browser") == []


def test_tab_and_enter_reach_everything(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    order = []
    for _ in range(7):
        press(driver, Keys.TAB)
        order.append(focused(driver))
        outline = "return getComputedStyle(document.activeElement).outlineWidth"
        assert driver.execute_script(outline) == "3px"
    # Undo is disabled, since nothing was done yet.
    assert order == ["1 brick", "2 grass", "3 water", "skip", "class", "Add", "keys"]
    driver.execute_script("document.querySelector('#classes button').focus()")
    press(driver, Keys.ENTER)
    wait_for_picture(driver, 1)
    press(driver, Keys.SPACE)  # the focus stays on the class
    wait_for_picture(driver, 2)
    assert labels(server) == ["brick", "brick", "", ""]


def test_keys_can_be_turned_off(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    driver.find_element(By.ID, "keys").click()
    press(driver, "1", "s", "n")
    assert focused(driver) == "keys"
    assert labels(server) == [""] * 4
    press(driver, Keys.SPACE, "1")
    wait_for_picture(driver, 1)


def test_first_classes_are_typed(driver: Chrome, tmp_path: Path) -> None:
    for i in range(3):
        save(picture("grass", i), tmp_path / "heap" / f"{i}.png")
    with serving(tmp_path / "heap", 3) as server:
        open_page(driver, server)
        assert "no classes yet" in text_of(driver, "hint")
        press(driver, "n")
        assert focused(driver) == "class"
        press(driver, "s", "u", "n", "1", Keys.ENTER)  # in the field these are letters
        WebDriverWait(driver, 10).until(lambda d: text_of(d, "status") == "Class sun1 added.")
        assert focused(driver) == "figure"
        press(driver, "n", ODD, Keys.ENTER)
        WebDriverWait(driver, 10).until(lambda d: ODD in text_of(d, "status"))
        press(driver, "2")
        wait_for_picture(driver, 1)
        assert driver.title == "Label pictures"
        assert labels(server) == [ODD, "", ""]
        press(driver, "n", "sun1", Keys.ENTER)
        WebDriverWait(driver, 10).until(lambda d: "exists already" in text_of(d, "problem"))
        press(driver, Keys.ESCAPE, "1")
        wait_for_picture(driver, 2)
        assert not driver.find_element(By.ID, "problem").is_displayed()
        assert labels(server) == [ODD, "sun1", ""]


def test_a_lost_server_and_a_full_disk_are_shown(driver: Chrome, tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    with serving(home, 4) as server:
        open_page(driver, server)
        table = server.queue.table.path
        server.queue.table.path = tmp_path / "gone" / "labels.csv"
        press(driver, "1")
        WebDriverWait(driver, 10).until(lambda d: "cannot write" in text_of(d, "problem"))
        assert text_of(driver, "progress").startswith("Picture 1 of 4")
        server.queue.table.path = table
        press(driver, "1")
        wait_for_picture(driver, 1)
    press(driver, "1")
    WebDriverWait(driver, 10).until(lambda d: "No connection" in text_of(d, "problem"))


def test_two_windows_do_not_label_the_same_picture(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    server.queue.label(0, "water")  # as if from another window
    press(driver, "1")
    wait_for_picture(driver, 1)
    assert labels(server) == ["water", "", "", ""]


@pytest.mark.parametrize("width", [320, 375, 768])
def test_narrow_touch_screens(driver: Chrome, tmp_path: Path, width: int) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    with serving(home, 4, classes=["a class with quite a long name " * 3, "x" * 90]) as server:
        open_page(driver, server, width=width)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        for button in driver.find_elements(By.TAG_NAME, "button"):
            assert button.size["height"] >= 44
            assert button.size["width"] >= 44


def test_light_and_dark(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    script = "return getComputedStyle(document.body).backgroundColor"
    assert driver.execute_script(script) == "rgb(255, 255, 255)"
    prefer(driver, "dark")
    assert driver.execute_script(script) == "rgb(18, 23, 30)"


def test_screen_reader(driver: Chrome, server: LabelServer) -> None:
    open_page(driver, server)
    press(driver, "2")
    wait_for_picture(driver, 1)
    nodes: list[dict[str, Any]] = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    accessible = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and "role" in node
    ]
    name = Path(server.queue.pictures[1].name).name
    assert ("image", f"Picture 2 of 4, {name}") in accessible
    assert ("group", "Classes") in accessible
    assert ("textbox", "New class") in accessible
    assert {"main", "banner", "heading", "status"} <= {role for role, _ in accessible}
    for role in ("button", "textbox", "checkbox", "progressbar"):
        assert all(label for kind, label in accessible if kind == role), role
    reason = server.queue.pictures[1].reason
    assert text_of(driver, "status") == f"Labeled grass. Picture 2 of 4: {reason}"
