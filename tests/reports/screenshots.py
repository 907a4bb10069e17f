"""Screenshots of a report for the docs: python -m tests.reports.screenshots REPORT FOLDER."""

import base64
import sys
from pathlib import Path

from tests.browser import browser, prefer, resize, visit


def take_screenshot(report: Path, path: Path, scheme: str, width: int, height: int | None) -> None:
    """`height` None: the whole page."""
    with browser() as driver:
        prefer(driver, scheme)
        resize(driver, width)
        visit(driver, report.resolve().as_uri())
        if height is None:
            height = driver.execute_script("return document.documentElement.scrollHeight")
        resize(driver, width, height)
        screenshot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(screenshot["data"]))


if __name__ == "__main__":
    report, folder = map(Path, sys.argv[1:3])
    take_screenshot(report, folder / "report.png", "light", 1100, 1190)
    take_screenshot(report, folder / "report-dark.png", "dark", 1100, 1190)
