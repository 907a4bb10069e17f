"""The page of `fullmatch check`: every finding with thumbnails of its pictures."""

import base64
from collections.abc import Sequence

from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import DataFinding, FindingKind
from fullmatch.data.stores.pictures import try_read
from fullmatch.errors import pluralize
from fullmatch.evaluation.wording import capitalize
from fullmatch.inference.thumbnails import make_thumbnail
from fullmatch.pages.frame import Section, render_page, resource
from fullmatch.pages.markup import Markup, join, tag

SIDE = 160  # pixels of a thumbnail
MOST_SHOWN = 60  # pictures per finding, so that the page stays small
# Files that are not pictures, or cannot be read, are listed without thumbnails.
WITHOUT_PICTURES = (FindingKind.UNREADABLE, FindingKind.NOT_PICTURES)
HEADINGS = {
    FindingKind.CONFLICTING_LABELS: "Different labels",
    FindingKind.CONFLICTING_ROWS: "Contradicting rows",
    FindingKind.EXACT_DUPLICATES: "Exact duplicates",
    FindingKind.NEAR_CONFLICTS: "Near duplicates with different labels",
    FindingKind.NEAR_DUPLICATES: "Near duplicates",
    FindingKind.NEAR_TEST_DUPLICATES: "Test pictures like training pictures",
    FindingKind.NOT_PICTURES: "Other files",
    FindingKind.OUTLIERS: "Unlike the labeled pictures",
    FindingKind.OUTSIDE: "In no class folder",
    FindingKind.SUSPECT_LABELS: "Labels that look wrong",
    FindingKind.TEST_DUPLICATES: "Training pictures in the test set",
    FindingKind.UNREADABLE: "Unreadable files",
}


def render_check_page(check: DataCheck, most_shown: int = MOST_SHOWN) -> str:
    """One file: all findings in short, then those about pictures, each with thumbnails."""
    style = resource("check_page.css", "fullmatch.inference")
    sections = [Section("findings", "Findings", render_summary(check.findings), style=style)]
    sections += [
        Section(section_key(at), HEADINGS[each.kind], render_finding(check, each, most_shown))
        for at, each in enumerate(check.findings)
        if each.files
    ]
    pictures = sum(check.classes.values()) + check.unlabeled + sum(check.test.values())
    by = f"features of {check.network}" if check.network else "their pixels"
    subtitle = f"{pluralize(pictures, 'picture')}, compared by {by}. No file was changed."
    return render_page(f"Check of {check.name}", subtitle, sections)


def section_key(at: int) -> str:
    return f"finding-{at + 1}"


def render_summary(findings: Sequence[DataFinding]) -> Markup:
    """A list of all findings, each with a link to its pictures."""
    if not findings:
        return tag("p", "No problems were found.")
    items = []
    for at, finding in enumerate(findings):
        text: object = f"{capitalize(finding.sentence())}."
        if finding.files:
            text = tag("a", text, href=f"#{section_key(at)}")
        items.append(tag("li", text, class_="warn" if finding.blocks_training else None))
    return tag("ul", *items)


def render_finding(check: DataCheck, finding: DataFinding, most_shown: int) -> Markup:
    sentence = tag("p", f"{capitalize(finding.sentence())}.")
    rest = render_rest(len(finding.files) - most_shown)
    if finding.kind in WITHOUT_PICTURES:
        names = tag("ul", *(tag("li", name) for name in finding.files[:most_shown]))
        return join([sentence, names, rest])
    notes = dict(zip(finding.files, finding.notes, strict=False))
    if not finding.groups:
        return join([sentence, render_gallery(check, finding.files[:most_shown], notes), rest])
    galleries, left = [], most_shown
    for group in finding.groups:
        shown = group[: max(left, 0)]
        left -= len(group)
        # Which of the pictures in the group it is like is seen.
        short = {name: shorten(notes.get(name, ""), group) for name in shown}
        galleries += [render_gallery(check, shown, short)] if shown else []
    return join([sentence, tag("div", *galleries, class_="groups"), rest])


def shorten(note: str, group: Sequence[str]) -> str:
    """'crop' for 'crop of NAME', where NAME is shown beside it."""
    for name in group:
        note = note.removesuffix(f" of {name}").removesuffix(f"like {name}")
    return note


def render_gallery(check: DataCheck, names: Sequence[str], notes: dict[str, str]) -> Markup:
    items = (render_item(check, name, notes.get(name, "")) for name in names)
    return tag("ul", *items, class_="gallery")


def render_item(check: DataCheck, name: str, note: str) -> Markup:
    def read_thumbnail(name: str) -> bytes:
        with check.open_picture(name) as image:
            return make_thumbnail(image, SIDE)

    jpeg = try_read(read_thumbnail, name) or b""
    url = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    return tag(
        "li",
        tag("img", src=url, alt=f"{name}{f': {note}' if note else ''}"),
        tag("span", note) if note else "",
        tag("span", name, class_="name"),
    )


def render_rest(count: int) -> Markup:
    if count <= 0:
        return Markup("")
    return tag(
        "p", f"And {count:,} more, which are listed in the file of findings.", class_="faint"
    )
