"""What is done about somebody's own pictures before training: leaks, disputes, balance, mirrors."""

from dataclasses import replace

import torch

from fullmatch.data.dataset import SemiDataset
from fullmatch.data.quality.duplicates import exact_groups
from fullmatch.data.quality.fingerprints import digests_of
from fullmatch.errors import UserError

UNEVEN = 2.0  # times the labels of the smallest class, before small classes are shown more often
REPEATS = 10  # a picture is repeated at most so often
SHOWN_MORE = "labeled pictures of small classes are shown more often"


def prepared(dataset: SemiDataset, *, flip: bool | None = None) -> SemiDataset:
    """The data set without what would mislead; benchmarks stay as their protocol has them."""
    if dataset.benchmark:
        return dataset if flip is None else mirrored(dataset, flip)
    return mirrored(balanced(without_disputes(without_test_copies(dataset))), flip)


def without_test_copies(dataset: SemiDataset) -> SemiDataset:
    """Leaves out training pictures whose pixels are those of a test picture."""
    if dataset.test is None:
        return dataset
    tested = set(digests_of(dataset.test))
    own = torch.tensor([digest not in tested for digest in digests_of(dataset.images)])
    if own.all():
        return dataset
    note = f"{int((~own).sum())} training pictures are also in the test: left out of training"
    return _kept(
        dataset,
        dataset.labeled[own[dataset.labeled]],
        dataset.unlabeled[own[dataset.unlabeled]],
        note,
    )


def without_disputes(dataset: SemiDataset) -> SemiDataset:
    """Leaves aside the labels of pictures that are labeled in two ways."""
    positions = torch.unique(dataset.labeled)
    known = digests_of(dataset.images)
    digests = [known[at] for at in positions.tolist()]
    labels = dataset.labels[positions]
    disputed = [g for g in exact_groups(digests) if len(set(labels[g].tolist())) > 1]
    if not disputed:
        return dataset
    doubtful = positions[torch.tensor([at for group in disputed for at in group])]
    agreed = ~torch.isin(dataset.labeled, doubtful)
    note = f"{len(doubtful)} labeled pictures are copies with different labels: labels not used"
    return _kept(dataset, dataset.labeled[agreed], dataset.unlabeled, note)


def balanced(dataset: SemiDataset) -> SemiDataset:
    """Repeats the labeled pictures of small classes, so that a step sees every class as often."""
    labels = dataset.labels[dataset.labeled]
    counts = torch.bincount(labels, minlength=dataset.num_classes)
    if int(counts.max()) <= UNEVEN * int(counts.min()):
        return dataset
    times = (counts.max() / counts.clamp(min=1)).round().long().clamp(max=REPEATS)
    small = [dataset.classes[k] for k in range(len(counts)) if times[k] > 1]
    note = f"{SHOWN_MORE}: {', '.join(small[:5])}"
    return _kept(dataset, dataset.labeled.repeat_interleave(times[labels]), dataset.unlabeled, note)


def mirrored(dataset: SemiDataset, flip: bool | None = None) -> SemiDataset:
    """Decides whether mirror images keep their class; without a word from the user, by names."""
    if flip is None:
        flip = may_flip(dataset.classes)
    if flip == dataset.appearance.flip:
        return dataset
    seen = replace(dataset, appearance=replace(dataset.appearance, flip=flip))
    words = "" if flip else "not "
    return replace(seen, notes=(*dataset.notes, f"pictures are {words}mirrored in training"))


def may_flip(classes: tuple[str, ...]) -> bool:
    """False when the classes are named like digits, letters or directions."""
    names = [name.lower() for name in classes]
    written = all(name.isdigit() or len(name) == 1 for name in names)
    return not written and not {"left", "right"} <= set(names)


def _kept(
    dataset: SemiDataset, labeled: torch.Tensor, unlabeled: torch.Tensor, note: str
) -> SemiDataset:
    counts = torch.bincount(dataset.labels[labeled], minlength=dataset.num_classes)
    if int(counts.min()) == 0:
        name = dataset.classes[int(counts.argmin())]
        raise UserError(f"{note}, and none is left of the class {name!r}; label more of it")
    return replace(dataset, labeled=labeled, unlabeled=unlabeled, notes=(*dataset.notes, note))
