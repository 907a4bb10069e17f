"""The documentation site: built without a warning, complete, linked, and right on small screens."""

import importlib
import re
import shlex
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.wait import WebDriverWait
from sphinx.application import Sphinx

from fullmatch.cli import main
from tests.browser import browser, prefer, resize, visit
from tests.served import copy_run, digit_files, digits_run
from tests.small_pictures import write_pets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
# Parts of another page, and not pages of their own.
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and not path.name.endswith(".notes.md")
)
# Pages whose code is run here; other tests run that of the others.
OWN = [
    DOCS / "getting_started.md",
    *(path for path in PAGES if path.parent.name in ("api", "concepts", "howto")),
]
SHORT = {
    "train": "--steps 2 --model wrn-10-1 --set training.batch=10 --set training.ratio=1",
}
# Languages of blocks that are not run: output, layouts and differences; data.
SHOWN = {"text", "diff", "json", "toml", "{toctree}", "{eval-rst}", "{include}"}


PUBLIC = ("", "algorithms", "config", "data", "distributed", "estimator", "losses", "models")
# They need several processes, or more time: other tests and pages use them.
NOT_SHOWN = {
    *(("distributed", name) for name in ("may_restart", "process_group", "restarted")),
    *(("", name) for name in ("CheckReport", "FullMatchLoss", "SweepTable", "sweep")),
}


class Page(HTMLParser):
    """The links and anchors of a page, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        self.loaded += [values["src"]] if tag in ("img", "script") and "src" in values else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    warnings = StringIO()
    app = Sphinx(DOCS, DOCS, out, out / ".doctrees", "html", status=None, warning=warnings)
    app.build()
    assert warnings.getvalue() == ""
    return out


def test_every_page_is_in_the_navigation(site: Path) -> None:
    index = Page(site / "index.html")
    shown = {urlsplit(link).path for link in index.links}
    for path in (*PAGES, DOCS / "commands.rst", *NOTEBOOKS):
        page = path.relative_to(DOCS).with_suffix(".html").as_posix()
        menu = shown if page.count("/") == 0 else {*shown, *_links_below(site)}
        assert page == "index.html" or page in menu, (
            f"add {path.name} to a toctree of docs/index.md"
        )


def _links_below(site: Path) -> set[str]:
    """Links in the menus of the pages that list others, from the top of the site."""
    return {
        f"{folder}/{link}" for folder in ("api", "howto", "notebooks") for link in
        Page(site / folder / "index.html").links
    }  # fmt: skip


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > len(PAGES)
    broken = []
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                assert link in page.links, f"{path.name} loads {link} from a network"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else set()
            if not target.is_file() or (anchor and target in pages and anchor not in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_every_table_is_one(site: Path) -> None:
    """A table with a mistake is shown as text with bars."""
    for path in site.rglob("*.html"):
        assert not re.search(r"<p>\s*\|", path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_documented(site: Path, module: str) -> None:
    home = f"fullmatch.{module}".rstrip(".")
    anchors = {
        name for path in (site / "api").glob("*.html") for name in Page(path).anchors
    }  # fmt: skip
    last = {name.rpartition(".")[2] for name in anchors}
    for name in importlib.import_module(home).__all__:
        if module or name != "FullMatchLoss":  # that of the losses
            assert f"{home}.{name}" in anchors or (module == "estimator" and name in last), name


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_example(module: str) -> None:
    """It is used in code of its page, which `test_code_runs` runs."""
    page = DOCS / "api" / f"{module if module not in ('', 'estimator') else 'fullmatch'}.md"
    code = "".join(each for language, each in blocks(page.read_text()) if language == "python")
    for name in importlib.import_module(f"fullmatch.{module}".rstrip(".")).__all__:
        shown = re.search(rf"\b{name}\b", code) is not None
        assert shown or (module, name) in NOT_SHOWN, f"{page.name}: add an example of {name}"


def test_every_function_and_class_has_a_docstring() -> None:
    for module in PUBLIC:
        home = importlib.import_module(f"fullmatch.{module}".rstrip("."))
        for name in home.__all__:
            value = getattr(home, name)
            assert not callable(value) or value.__doc__, f"{home.__name__}.{name}"


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of each code block."""
    return re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_block_is_run_or_marked(path: Path) -> None:
    """A page with code that is run is named by the test that runs it."""
    languages = {language for language, _ in blocks(path.read_text(encoding="utf-8"))} - SHOWN
    tests = [*(ROOT / "tests").rglob("test_*.py")]
    if languages and path not in OWN and path.name != "architecture.md":
        named = [test for test in tests if path.name in test.read_text(encoding="utf-8")]
        assert named, f"no test runs the code of {path.name}"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages take for granted: a finished run, pictures, and new ones."""
    place = tmp_path_factory.mktemp("workplace")
    copy_run(digits_run(), place / "runs" / "pictures")
    digit_files(place / "new", 2)
    write_pets(place).rename(place / "pictures")
    return place


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_code_runs(
    path: Path,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workplace)
    space: dict[str, Any] = {"__name__": "page"}
    for language, content in blocks(path.read_text(encoding="utf-8")):
        if language == "python":
            capsys.readouterr()
            exec(compile(content, str(path), "exec"), space)
            printed = capsys.readouterr().out
        elif language == "text" and space.keys() > {"__name__"}:
            assert printed == content
        elif language == "sh":
            for line in content.splitlines():
                words = shlex.split(line)[1:]
                main([*words, *SHORT.get(words[0], "").split()])


def test_pages_fit_and_follow_the_dark_theme(site: Path) -> None:
    pages = ["index", "getting_started", "api/losses", "algorithms", "concepts/two_losses"]
    pages += ["results", "notebooks/paper", "commands", "environment"]
    with browser() as driver:
        for width in (390, 1280):  # a phone, a laptop
            resize(driver, width, 844)
            for page in pages:
                visit(driver, (site / f"{page}.html").as_uri())
                shown = driver.execute_script("return document.documentElement.scrollWidth")
                assert shown <= width, page
        backgrounds = []
        for scheme in ("light", "dark"):
            prefer(driver, scheme)
            script = "return getComputedStyle(document.body).backgroundColor"
            backgrounds.append(driver.execute_script(script))
        assert len(set(backgrounds)) == 2


def test_search_works_without_a_server(site: Path) -> None:
    with browser() as driver:
        visit(driver, (site / "search.html").as_uri() + "?q=pseudo-label")
        found = "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
        WebDriverWait(driver, 30, 0.1).until(lambda d: d.execute_script(found))
        links = driver.execute_script(found)
        assert any(link.partition("?")[0].endswith("concepts/pseudo_labels.html") for link in links)
