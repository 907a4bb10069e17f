"""The page of licenses names every package that a user may need."""

import re

from benchmarks.licenses import PAGE, list_dependencies, read_license


def test_every_dependency_is_on_the_page() -> None:
    rows = re.findall(r"^\| ([\w.-]+) \| (.+?) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {name: need for name, need, _ in rows if name not in ("package", "---")}
    assert listed == list_dependencies(), "run: python -m benchmarks.licenses"
    assert not [name for name, _, license in rows if "unknown" in license.lower()]


def test_licenses_are_read_from_the_packages() -> None:
    assert "BSD-3-Clause" in read_license("numpy")
    assert "not installed" in read_license("no-such-package")
