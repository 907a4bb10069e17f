"""Open set: classes without a label, whose images stay among the unlabeled and the test images."""

from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor

from fullmatch.data.dataset import Source
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError, pluralize

LISTED = 5  # classes that a note names


class SubsetStore:
    """Some images of another store, read from there."""

    def __init__(self, store: ImageStore, positions: Tensor) -> None:
        self.store, self.positions = store, positions
        self.shape = store.shape
        self.paths = tuple(store.paths[at] for at in positions.tolist()) if store.paths else ()

    def __len__(self) -> int:
        return len(self.positions)

    def read(self, index: Tensor) -> Tensor:
        return self.store.read(self.positions[index.to(self.positions.device)])


def hide_classes(source: Source, names: Collection[str]) -> Source:
    """The source without the labels of these classes, which become unknown classes.

    Their training images have no label, and their test images are set apart in `unknown_test`. The
    other classes are renumbered. Names of other classes than those of the source are ignored.
    """
    hidden = [code for code, name in enumerate(source.classes) if name in set(names)]
    if not hidden:
        return source
    if source.unknown_classes:
        raise ValueError(f"{source.name} has unknown classes already; hide all of them at once")
    known = [code for code in range(source.num_classes) if code not in hidden]
    if len(known) < 2:
        left = f"only the class {source.classes[known[0]]!r}" if known else "no class"
        raise UserError(
            f"data.unknown_classes leaves {left} of {source.name}; leave at least 2 classes known"
        )
    # The last entry is for images without a label, whose code is -1.
    codes = torch.full((source.num_classes + 1,), -1)
    codes[known] = torch.arange(len(known))
    unlabeled = int(torch.isin(source.labels, torch.tensor(hidden)).sum())
    unknown = tuple(source.classes[code] for code in hidden)
    source = set_apart_unknown_test(source, codes)
    return replace(
        source,
        labels=codes[source.labels],
        classes=tuple(source.classes[code] for code in known),
        unknown_classes=unknown,
        notes=(*source.notes, describe_hidden(unknown, unlabeled)),
    )


def set_apart_unknown_test(source: Source, codes: Tensor) -> Source:
    """Split the test images into those of known and those of unknown classes."""
    if source.test is None or source.test_labels is None:
        return source
    labels = codes[source.test_labels]
    known, unknown = (labels >= 0).nonzero().flatten(), (labels < 0).nonzero().flatten()
    if not len(unknown):
        return replace(source, test_labels=labels)
    if not len(known):
        raise UserError(
            f"all test images of {source.name} are of unknown classes; add some of known classes, "
            "or remove classes from data.unknown_classes"
        )
    return replace(
        source,
        test=select_images(source.test, known),
        test_labels=labels[known],
        unknown_test=select_images(source.test, unknown),
    )


def select_images(store: ImageStore, positions: Tensor) -> ImageStore:
    """The images at these positions; in memory if the store is."""
    if type(store) is TensorStore:
        paths = [store.paths[at] for at in positions.tolist()] if store.paths else ()
        return TensorStore(store.images[positions.to(store.images.device)], paths)
    return SubsetStore(store, positions)


def describe_hidden(names: tuple[str, ...], images: int) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    classes = pluralize(names, "unknown class", "unknown classes")
    hidden = f"; {pluralize(images, 'training image')} of them without a label" if images else ""
    return f"{classes}: {', '.join(names[:LISTED])}{more}{hidden}"
