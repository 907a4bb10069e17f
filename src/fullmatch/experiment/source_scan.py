"""What a plan needs to know of pictures, without decoding any: how many, and of which shape."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from fullmatch import data
from fullmatch.core import Appearance
from fullmatch.data import Source, TensorStore
from fullmatch.data.dataset import sort_classes
from fullmatch.data.sources.picture_files import choose_form
from fullmatch.data.sources.picture_tables import survey_table
from fullmatch.data.sources.places import is_table
from fullmatch.data.sources.survey import survey_pictures


def scan_source(place: str | Path) -> Source:
    """As much of a source as planning needs, from file names and headers; nothing is decoded."""
    if is_table(str(place)):
        return scan_table(str(place))
    path = Path(place).expanduser()
    if not path.is_dir() and path.suffix.lower() != ".csv":
        return data.load(str(path))
    survey = survey_pictures(path)
    labels = Counter(label for _, label in survey.labeled)
    if len(labels) < 2:
        return data.load(str(path))  # its error says what is missing
    side, channels = choose_form([file for file, _, _ in survey.items()])
    return blank_source(
        {name: labels[name] for name in sort_classes(labels)},
        unlabeled=len(survey.unlabeled),
        test=len(survey.test),
        side=side,
        channels=channels,
    )


def scan_table(name: str) -> Source:
    """The same for tables and shards."""
    table = survey_table(name)
    counts = np.bincount(table.labels[table.labels >= 0], minlength=len(table.classes)).tolist()
    side, channels = table.choose_form()
    return blank_source(
        dict(zip(table.classes, counts, strict=True)),
        unlabeled=int((table.labels < 0).sum()),
        test=len(table.test),
        side=side,
        channels=channels,
    )


def blank_source(
    classes: Mapping[str, int], *, unlabeled: int, test: int, side: int, channels: int
) -> Source:
    """A source with these numbers of blank pictures, which take no memory."""

    def blank(count: int) -> TensorStore:
        image = torch.zeros(1, channels, side, side, dtype=torch.uint8)
        return TensorStore(image.expand(count, -1, -1, -1))

    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor(list(classes.values())))
    return Source(
        name="plan",
        images=blank(len(labels) + unlabeled),
        labels=torch.cat([labels, torch.full((unlabeled,), -1)]),
        test=blank(test) if test else None,
        classes=tuple(classes),
        appearance=Appearance(
            mean=(0.5,) * channels, std=(0.25,) * channels, padding=max(1, side // 8)
        ),
    )


def blank_copy(source: Source, side: int) -> Source:
    """Blank pictures as many as in the source, at another size, to time steps with."""
    counts = torch.bincount(source.labels[source.labels >= 0], minlength=source.num_classes)
    return blank_source(
        dict(zip(source.classes, counts.tolist(), strict=True)),
        unlabeled=int((source.labels < 0).sum()),
        test=0,
        side=side,
        channels=source.images.shape[0],
    )
