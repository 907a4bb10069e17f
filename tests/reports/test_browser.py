"""Reports in a real browser: on a phone, by keyboard, for screen readers, without a network."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fullmatch.cli.commands.report import report
from tests.browser import browser, prefer, resize, visit
from tests.written_runs import ODD, write_run


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser() as chrome:
        yield chrome


@pytest.fixture(scope="module")
def pages(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("pages")
    odd = write_run(place / "odd", classes=(*ODD, "a class with quite a long name " * 3))
    unfinished = write_run(place / "unfinished", finished=False)
    pages = {name: place / f"{name}.html" for name in ("digits", "odd", "unfinished", "comparison")}
    report(digits_run, out=pages["digits"])
    report(odd, out=pages["odd"])
    report(unfinished, out=pages["unfinished"])
    report(digits_run, odd, unfinished, out=pages["comparison"])
    return pages


def open_page(driver: Chrome, path: Path, *, width: int = 1100, scheme: str = "light") -> None:
    prefer(driver, scheme)
    resize(driver, width)
    visit(driver, "about:blank")
    driver.get_log("browser")
    driver.get_log("performance")
    visit(driver, path.as_uri())


def requested_urls(driver: Chrome) -> list[str]:
    events = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    sent: list[dict[str, Any]] = [
        event["params"]["request"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return [request["url"] for request in sent]


def background(driver: Chrome) -> str:
    script = "return getComputedStyle(document.body).backgroundColor"
    return str(driver.execute_script(script))


LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 23, 30)"
NAMES = ("digits", "odd", "unfinished", "comparison")


@pytest.mark.parametrize("name", NAMES)
def test_renders_without_errors_and_without_a_network(
    driver: Chrome, pages: dict[str, Path], name: str
) -> None:
    open_page(driver, pages[name])
    assert driver.get_log("browser") == []
    # data: URLs count as requests too, but nothing is sent.
    loaded = [address for address in requested_urls(driver) if not address.startswith("data:")]
    assert loaded == [pages[name].as_uri()]
    charts = driver.find_elements(By.CSS_SELECTOR, "figure svg")
    assert charts
    assert all(chart.size["width"] > 200 and chart.size["height"] > 100 for chart in charts)
    broken = "return [...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert driver.execute_script(broken) == 0


def test_class_names_are_shown_and_never_run(driver: Chrome, pages: dict[str, Path]) -> None:
    open_page(driver, pages["odd"])
    assert ODD[0] in driver.find_element(By.ID, "classes").text
    assert len(driver.find_elements(By.TAG_NAME, "script")) == 1


def test_lines_have_the_colors_of_the_theme(driver: Chrome, pages: dict[str, Path]) -> None:
    script = """
      const lines = document.querySelectorAll("#curve-0-axes_1 > g[id*=line2d] > path");
      return [...lines].map(line => getComputedStyle(line).stroke)
    """
    open_page(driver, pages["digits"])
    assert "rgb(0, 114, 178)" in driver.execute_script(script)
    open_page(driver, pages["digits"], scheme="dark")
    assert "rgb(86, 180, 233)" in driver.execute_script(script)


def test_the_theme_follows_the_system_until_it_is_chosen(
    driver: Chrome, pages: dict[str, Path]
) -> None:
    open_page(driver, pages["digits"])
    driver.execute_script("localStorage.clear()")
    open_page(driver, pages["digits"], scheme="dark")
    assert background(driver) == DARK
    button = driver.find_element(By.ID, "theme")
    assert button.is_displayed()
    assert button.text == "Light theme"
    button.click()
    assert background(driver) == LIGHT
    assert button.text == "Dark theme"
    open_page(driver, pages["digits"], scheme="dark")
    assert background(driver) == LIGHT  # the choice is remembered
    driver.find_element(By.ID, "theme").click()
    assert background(driver) == DARK
    driver.execute_script("localStorage.clear()")
    open_page(driver, pages["digits"])
    assert background(driver) == LIGHT


def test_links_scroll_to_their_sections(driver: Chrome, pages: dict[str, Path]) -> None:
    open_page(driver, pages["digits"])
    driver.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    links = driver.find_elements(By.CSS_SELECTOR, "nav a")
    assert len(links) == 9
    for link in links:
        driver.execute_script("scrollTo(0, 0)")
        link.click()
        key = str(link.get_dom_attribute("href"))[1:]
        script = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
        top = driver.execute_script(script, key)
        assert -5 <= top < 900, key
        assert driver.current_url.endswith(f"#{key}")


@pytest.mark.parametrize("width", [320, 375, 768])
@pytest.mark.parametrize("name", NAMES)
def test_narrow_screens_do_not_scroll_sideways(
    driver: Chrome, pages: dict[str, Path], name: str, width: int
) -> None:
    open_page(driver, pages[name], width=width)
    driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert driver.execute_script("return innerWidth") == width
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_everything_is_reachable_by_keyboard(driver: Chrome, pages: dict[str, Path]) -> None:
    open_page(driver, pages["digits"])
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    skip = driver.switch_to.active_element
    assert skip.text == "Skip to content"
    assert skip.location["x"] >= 0
    skip.send_keys(Keys.TAB)
    button = driver.switch_to.active_element
    assert button.get_dom_attribute("id") == "theme"
    outline = driver.execute_script("return getComputedStyle(arguments[0]).outlineWidth", button)
    assert outline == "3px"
    before = background(driver)
    button.send_keys(Keys.ENTER)
    assert background(driver) != before
    button.send_keys(Keys.SPACE)
    assert background(driver) == before
    button.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Result"
    summary = driver.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    assert driver.find_element(By.TAG_NAME, "details").get_property("open")


def test_screen_readers_get_charts_tables_and_landmarks(
    driver: Chrome, pages: dict[str, Path]
) -> None:
    open_page(driver, pages["digits"])
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named_roles = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and "role" in node
    ]
    roles = {role for role, _ in named_roles}
    assert {"main", "banner", "navigation", "contentinfo", "table", "heading"} <= roles
    for role in ("image", "table", "region", "button", "link"):
        assert all(name for each, name in named_roles if each == role), role
    assert any(name.startswith("Test accuracy. At the last step:") for _, name in named_roles)
