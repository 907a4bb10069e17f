"""Pictures to look at: labels that look wrong, and pictures unlike the labeled ones."""

from collections.abc import Sequence

from fullmatch.pages.frame import Section
from fullmatch.pages.markup import Markup, join, tag
from fullmatch.reports.gallery import shorten_name, to_data_url
from fullmatch.reports.tables import PERCENT
from fullmatch.storage.findings import OutlierPicture, RunFindings, SuspectPicture
from fullmatch.storage.picture_map import Thumbnails

MOST_SHOWN = 24  # pictures of each kind
SUSPECT = (
    "A classifier that has not seen the label, and the most similar labeled pictures, agree on "
    "another class. Look at these pictures, and correct their labels where needed."
)
OUTLIER = (
    "Unlabeled pictures of another kind than the labeled ones, the least similar first. Remove "
    "those that belong to no class."
)


def make_findings_section(findings: RunFindings, thumbnails: Thumbnails) -> Section:
    return Section("findings", "Pictures to check", render_findings(findings, thumbnails))


def render_findings(findings: RunFindings, thumbnails: Thumbnails) -> Markup:
    parts: list[Markup] = []
    if findings.suspect_labels:
        count = len(findings.suspect_labels)
        parts.append(tag("h3", f"Labels that look wrong ({count:,})"))
        parts.append(tag("p", SUSPECT))
        items = [
            render_item(each, describe_suspect(each), thumbnails)
            for each in findings.suspect_labels[:MOST_SHOWN]
        ]
        parts += [tag("ul", *items, class_="gallery"), render_rest(count)]
    if findings.outliers:
        count = len(findings.outliers)
        parts.append(tag("h3", f"Unlike the labeled pictures ({count:,})"))
        parts.append(tag("p", OUTLIER))
        items = [render_item(each, [], thumbnails) for each in findings.outliers[:MOST_SHOWN]]
        parts += [tag("ul", *items, class_="gallery"), render_rest(count)]
    if parts and thumbnails.missing:
        parts.append(tag("p", thumbnails.missing, class_="faint"))
    return join(parts)


def describe_suspect(picture: SuspectPicture) -> list[Markup]:
    percent = f"{100 * picture.probability:.0f}{PERCENT}"
    return [
        tag("span", f"labeled {picture.label}", class_="wrong"),
        tag("span", f"looks like {picture.looks_like}, {percent}"),
    ]


def render_item(
    picture: SuspectPicture | OutlierPicture, notes: Sequence[Markup], thumbnails: Thumbnails
) -> Markup:
    name = picture.name.rpartition("/")[2]
    shown = []
    if thumbnails.open_picture is not None:
        url = to_data_url(thumbnails.open_picture(picture.row))
        shown.append(tag("img", src=url, alt=name))
    caption = tag("span", shorten_name(name), class_="name", title=picture.name)
    return tag("li", *shown, *notes, caption)


def render_rest(count: int) -> Markup:
    if count <= MOST_SHOWN:
        return Markup("")
    return tag("p", f"And {count - MOST_SHOWN:,} more, in findings.json.", class_="faint")
