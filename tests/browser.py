"""A real browser for tests of pages: Debian's chromium, without a window or a network."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    with tempfile.TemporaryDirectory() as profile:
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            yield driver
        finally:
            driver.quit()


def visit(driver: webdriver.Chrome, address: str) -> None:
    """Open a page and wait until it is complete; `get` may return earlier on a busy machine."""
    driver.get(address)
    script = "return document.readyState === 'complete'"
    WebDriverWait(driver, 30, 0.02).until(lambda d: d.execute_script(script))


def resize(driver: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Set the size of the page, since a window cannot be as narrow as a phone."""
    metrics: dict[str, Any] = {"width": width, "height": height}
    metrics |= {"deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """Set the color scheme of the system: light or dark."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
