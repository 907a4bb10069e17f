"""Clean the user's pictures before training: test leaks, conflicting labels, balance, flipping."""

from dataclasses import replace

import torch
from torch import Tensor

from fullmatch.data.dataset import SemiDataset
from fullmatch.data.quality.duplicates import find_exact_duplicates
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.errors import UserError, pluralize

MAX_IMBALANCE = 2.0  # largest over smallest class, above which small classes are repeated
MAX_REPEATS = 10  # of a labeled picture


def clean_dataset(dataset: SemiDataset, *, flip: bool | None = None) -> SemiDataset:
    """Remove what would mislead training; benchmarks stay as their protocol defines them."""
    if dataset.benchmark:
        return dataset if flip is None else decide_flip(dataset, flip)
    dataset = drop_test_duplicates(dataset)
    dataset = drop_conflicting_labels(dataset)
    return decide_flip(balance_classes(dataset), flip)


def drop_test_duplicates(dataset: SemiDataset) -> SemiDataset:
    """Leave out training pictures that have the same pixels as a test picture."""
    tests = [store for store in (dataset.test, dataset.unknown_test) if store is not None]
    if not tests:
        return dataset
    test_digests = {digest for store in tests for digest in compute_digests(store)}
    keep = torch.tensor([digest not in test_digests for digest in compute_digests(dataset.images)])
    if keep.all():
        return dataset
    leaked = pluralize(int((~keep).sum()), "training picture is", "training pictures are")
    return _select(
        dataset,
        dataset.labeled[keep[dataset.labeled]],
        dataset.unlabeled[keep[dataset.unlabeled]],
        f"{leaked} also in the test set: left out of training",
    )


def drop_conflicting_labels(dataset: SemiDataset) -> SemiDataset:
    """Ignore the labels of exact duplicates that are labeled differently."""
    positions = torch.unique(dataset.labeled)
    all_digests = compute_digests(dataset.images)
    digests = [all_digests[position] for position in positions.tolist()]
    labels = dataset.labels[positions]
    groups = [g for g in find_exact_duplicates(digests) if len(set(labels[g].tolist())) > 1]
    if not groups:
        return dataset
    conflicting = positions[torch.tensor([member for group in groups for member in group])]
    note = (
        f"{len(conflicting)} labeled pictures are exact duplicates with different labels: "
        "their labels are not used"
    )
    keep = ~torch.isin(dataset.labeled, conflicting)
    return _select(dataset, dataset.labeled[keep], dataset.unlabeled, note)


def balance_classes(dataset: SemiDataset) -> SemiDataset:
    """Repeat the labeled pictures of small classes, so that a step sees all classes equally."""
    labels = dataset.labels[dataset.labeled]
    counts = torch.bincount(labels, minlength=dataset.num_classes)
    if not dataset.balance or int(counts.max()) <= MAX_IMBALANCE * int(counts.min()):
        return dataset
    repeats = (counts.max() / counts.clamp(min=1)).round().long().clamp(max=MAX_REPEATS)
    small = [dataset.classes[k] for k in range(len(counts)) if repeats[k] > 1]
    note = f"labeled pictures of small classes are shown more often: {', '.join(small[:5])}"
    labeled = dataset.labeled.repeat_interleave(repeats[labels])
    return replace(_select(dataset, labeled, dataset.unlabeled, note), balance_note=note)


def decide_flip(dataset: SemiDataset, flip: bool | None = None) -> SemiDataset:
    """Set whether training mirrors pictures; if the user did not say, decide by class names."""
    if flip is None:
        flip = can_flip(dataset.classes)
    if flip == dataset.appearance.flip:
        return dataset
    note = f"pictures are {'' if flip else 'not '}mirrored in training"
    appearance = replace(dataset.appearance, flip=flip)
    return replace(dataset, appearance=appearance, notes=(*dataset.notes, note))


def can_flip(classes: tuple[str, ...]) -> bool:
    """False if the classes are named like digits, letters or directions."""
    names = [name.lower() for name in classes]
    are_characters = all(name.isdigit() or len(name) == 1 for name in names)
    return not are_characters and not {"left", "right"} <= set(names)


def _select(dataset: SemiDataset, labeled: Tensor, unlabeled: Tensor, note: str) -> SemiDataset:
    """Keep these positions and add a note; every class must keep a label."""
    counts = torch.bincount(dataset.labels[labeled], minlength=dataset.num_classes)
    if int(counts.min()) == 0:
        name = dataset.classes[int(counts.argmin())]
        raise UserError(f"{note}; this leaves no label of the class {name!r}; label more of it")
    return replace(dataset, labeled=labeled, unlabeled=unlabeled, notes=(*dataset.notes, note))
